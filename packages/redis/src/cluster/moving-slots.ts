import type { Row } from '../calls/row.ts'
import { type Answer, isFailure } from '../replies/reply.ts'
import type { Plan } from '../scripts/plans.ts'
import { applyByShard } from './shards.ts'

type Answers = readonly Answer[]

/** Sends the rows of one call, which all live in one slot. */
type SendRows = (rows: readonly Row[], plan?: Plan) => Promise<Answers>

/** How long a slot that was seen to move is taken to be moving. */
const movingMs = 5_000

/**
 * A Cluster moves a slot key by key. Meanwhile it refuses calls of which it has some keys here and some there, or some new ones, with TRYAGAIN: such
 * a call certainly did not run, so it is asked again, which nothing else is; and the wait would last as long as the move. A single key is always
 * in one place, where the client follows the redirection, so for some seconds each key of the slot is asked by itself. A request with several
 * keys is then decided key by key, with give-back. CLUSTERDOWN did not run either; it fails its requests, since it lasts longer than they can wait.
 */
export function overMovingSlots(send: SendRows): SendRows {
  let movingUntil = Number.NEGATIVE_INFINITY

  return async (rows, plan) => {
    if (performance.now() >= movingUntil) {
      try {
        return await send(rows, plan)
      } catch (error) {
        if (!isTryAgain(error)) throw error
        movingUntil = performance.now() + movingMs
      }
    }
    return sendKeyByKey(rows, send)
  }
}

async function sendKeyByKey(rows: readonly Row[], send: SendRows): Promise<Answers> {
  const answers = rows.map((): Answer => [])
  const calls: Promise<void>[] = []
  for (const positions of ofOneKey(rows)) {
    calls.push(
      send(positions.flatMap((at) => rows[at] ?? [])).then((results) => {
        for (const [index, at] of positions.entries()) answers[at] = results[index] ?? []
      }),
    )
  }
  for (const [at, row] of rows.entries()) {
    if (row.keys.length === 1) continue
    const askKey = async (part: Row) => {
      const [answer = []] = await send([part])
      if (isFailure(answer)) throw answer
      return answer
    }
    const isWhole = (key: string) => key
    calls.push(
      applyByShard(row, isWhole, askKey).then((outcomes) => {
        answers[at] = outcomes
      }),
    )
  }
  // Whoever failed, the batch is under way until the last of its calls is.
  const failed = (await Promise.allSettled(calls)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
  return answers
}

/** Where the rows of one key stand, key by key. */
function ofOneKey(rows: readonly Row[]): Iterable<number[]> {
  const positions = new Map<string, number[]>()
  for (const [at, { keys }] of rows.entries()) {
    const [key = '', ...others] = keys
    if (others.length > 0) continue
    const known = positions.get(key)
    if (known) known.push(at)
    else positions.set(key, [at])
  }
  return positions.values()
}

/** node-redis hands it on; ioredis tries again by itself for a while, and then names it as its last error. */
function isTryAgain(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^TRYAGAIN|^Too many Cluster redirections.*TRYAGAIN/.test(error.message)
  )
}
