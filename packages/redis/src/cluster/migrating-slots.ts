import type { CallTerms, PlannedRequests } from '../calls/call-encoder.ts'
import type { QueuedRequest } from '../model/queued-request.ts'
import { type AskResult, passOn } from '../replies/reply.ts'
import { mayHaveGrants } from '../scripts/usual-states.ts'
import { applyByShard } from './shards.ts'

export type AskRedis = (call: PlannedRequests, terms?: CallTerms) => Promise<readonly AskResult[]>

/** Time (ms) for which a slot counts as moving after a TRYAGAIN. */
const migratingMs = 5_000

/**
 * A Cluster moves a slot key by key. Meanwhile it answers TRYAGAIN to a call if its keys are on
 * both nodes, or if some are new. Such a call certainly did not run, so it may be repeated. A key
 * is always on one node, to which the client is redirected. So for some seconds each key is asked
 * by itself. A request with several keys is then decided key by key, with give-back.
 */
export function askAcrossMigration(askRedis: AskRedis, readHeldUnits: ReadText): AskRedis {
  const askOneKey = askApart(askRedis, readHeldUnits)
  let migratingUntil = Number.NEGATIVE_INFINITY

  return async (call) => {
    if (performance.now() >= migratingUntil) {
      try {
        return await askRedis(call)
      } catch (error) {
        if (!isTryAgain(error)) throw error
        migratingUntil = performance.now() + migratingMs
      }
    }
    return askKeyByKey(call.asks, askOneKey)
  }
}

type ReadText = (key: string) => Promise<string>

type AskOneKey = (asks: readonly QueuedRequest[]) => Promise<readonly AskResult[]>

/**
 * Asks about one key. Its grants have a key of their own, so TRYAGAIN may come here too, until both
 * have moved. Until then no process can change the grants, so what is read of them stays true. A
 * script that finds them beside its key goes by that instead.
 */
function askApart(askRedis: AskRedis, readHeldUnits: ReadText): AskOneKey {
  return async (asks) => {
    try {
      return await askRedis({ asks, plan: undefined })
    } catch (error) {
      const key = asks[0]?.keys[0]
      if (key === undefined || !isTryAgain(error) || !asks.some(mayHaveGrants)) throw error
      return askRedis({ asks, plan: undefined }, { apart: await readHeldUnits(key) })
    }
  }
}

async function askKeyByKey(
  asks: readonly QueuedRequest[],
  askOneKey: AskOneKey,
): Promise<readonly AskResult[]> {
  const submit = (part: QueuedRequest) => {
    askOneKey([part]).then(
      (found) => passOn(found, [part]),
      (error: unknown) => part.fail(error),
    )
  }
  const results = asks.map(async (ask): Promise<AskResult> => {
    if (ask.keys.length > 1) return applyByShard(ask, (key) => key, submit)
    const [found = []] = await askOneKey([ask])
    return found
  })
  // A failed call does not end the batch: it is under way until its last call has ended.
  await Promise.allSettled(results)
  return Promise.all(results)
}

/** ioredis tries again by itself for a while, and then names it as its last error. */
function isTryAgain(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^TRYAGAIN|^Too many Cluster redirections.*TRYAGAIN/.test(error.message)
  )
}
