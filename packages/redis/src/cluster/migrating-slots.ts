import type { Ask } from '@sluice/core'
import { type AskResult, passOn } from '../replies/reply.ts'
import type { Plan } from '../scripts/plans.ts'
import { applyByShard } from './shards.ts'

/** Asks Redis in one call. The keys of all asks live in one slot. */
export type AskRedis = (asks: readonly Ask[], plan?: Plan) => Promise<readonly AskResult[]>

/** Time (ms) for which a slot counts as moving after a TRYAGAIN. */
const migratingMs = 5_000

/**
 * A Cluster moves a slot key by key. Meanwhile it refuses calls of which it has some keys here and
 * some there, or some new ones, with TRYAGAIN: such a call certainly did not run, so it is asked
 * again, which nothing else is; and the wait would last as long as the move. A single key is always
 * in one place, where the client follows the redirection, so for some seconds each key of the slot
 * is asked by itself. A request with several keys is then decided key by key, with give-back.
 * CLUSTERDOWN did not run either; it fails its requests, since it lasts longer than they can wait.
 */
export function askAcrossMigration(askRedis: AskRedis): AskRedis {
  let migratingUntil = Number.NEGATIVE_INFINITY

  return async (asks, plan) => {
    if (performance.now() >= migratingUntil) {
      try {
        return await askRedis(asks, plan)
      } catch (error) {
        if (!isTryAgain(error)) throw error
        migratingUntil = performance.now() + migratingMs
      }
    }
    return askKeyByKey(asks, askRedis)
  }
}

async function askKeyByKey(
  asks: readonly Ask[],
  askRedis: AskRedis,
): Promise<readonly AskResult[]> {
  const results = asks.map((): AskResult => [])
  const calls: Promise<void>[] = []
  for (const positions of ofOneKey(asks)) {
    calls.push(
      askRedis(positions.flatMap((at) => asks[at] ?? [])).then((found) => {
        for (const [index, at] of positions.entries()) results[at] = found[index] ?? []
      }),
    )
  }
  for (const [at, ask] of asks.entries()) {
    if (ask.keys.length === 1) continue
    const submit = (part: Ask) => {
      askRedis([part]).then(
        (found) => passOn(found, [part]),
        (error: unknown) => part.fail(error),
      )
    }
    const isWhole = (key: string) => key
    calls.push(
      applyByShard(ask, isWhole, submit).then((outcomes) => {
        results[at] = outcomes
      }),
    )
  }
  // A failed call does not end the batch: it is under way until its last call has ended.
  const failed = (await Promise.allSettled(calls)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
  return results
}

/** Returns the indices of the asks of each key, key by key. */
function ofOneKey(asks: readonly Ask[]): Iterable<number[]> {
  const positions = new Map<string, number[]>()
  for (const [at, { keys }] of asks.entries()) {
    const [key = '', ...others] = keys
    if (others.length > 0) continue
    const known = positions.get(key)
    if (known) known.push(at)
    else positions.set(key, [at])
  }
  return positions.values()
}

/**
 * node-redis hands it on; ioredis tries again by itself for a while, and then names it as its last
 * error.
 */
function isTryAgain(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^TRYAGAIN|^Too many Cluster redirections.*TRYAGAIN/.test(error.message)
  )
}
