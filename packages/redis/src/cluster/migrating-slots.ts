import type { CallTerms, PlannedRequests } from '../calls/call-encoder.ts'
import type { QueuedRequest } from '../model/queued-request.ts'
import { type AskResult, passOn } from '../replies/reply.ts'
import { mayHaveGrants } from '../scripts/usual-states.ts'
import { applyByShard } from './shards.ts'

export type AskRedis = (call: PlannedRequests, terms?: CallTerms) => Promise<readonly AskResult[]>

/** Time (ms) for which a slot counts as migrating after a TRYAGAIN. */
const migratingMs = 5_000

/**
 * A Cluster migrates a slot key by key. Meanwhile it answers TRYAGAIN if the keys of a call are on
 * both nodes, or if some are new. That call certainly did not run, so it can be retried. A single
 * key is always on one node, to which the client is redirected. So for some seconds each key gets
 * its own call. A request with several keys is then decided key by key, and units are given back
 * after a denial.
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
 * Decides one key. Its grants are stored under another key, so TRYAGAIN can happen here too, until
 * both have moved. Until then no process can change the grants, so reading them first is safe. A
 * script that finds the grants on its own node uses those instead.
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
  // A failed call does not end the batch, which stays in flight until its last call ends.
  await Promise.allSettled(results)
  return Promise.all(results)
}

/** ioredis retries on its own for a while, and then reports it as its last error. */
function isTryAgain(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^TRYAGAIN|^Too many Cluster redirections.*TRYAGAIN/.test(error.message)
  )
}
