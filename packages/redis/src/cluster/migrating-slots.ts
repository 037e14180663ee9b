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
export function askAcrossMigration(
  askRedis: AskRedis,
  readHeldUnits: (key: string) => Promise<string>,
): AskRedis {
  let migratingUntil = Number.NEGATIVE_INFINITY

  /**
   * Decides one key. Its grants are stored under another key, so TRYAGAIN can happen here too,
   * until both have moved. Until then no process can change the grants, so reading them first is
   * safe. A script that finds the grants on its own node uses those instead.
   */
  async function askOneKey(ask: QueuedRequest): Promise<AskResult> {
    const call = { asks: [ask], plan: undefined }
    const [result = []] = await askRedis(call).catch(async (error: unknown) => {
      if (!isTryAgain(error) || !mayHaveGrants(ask)) throw error
      return askRedis(call, { apart: await readHeldUnits(ask.keys[0] ?? '') })
    })
    return result
  }

  function submit(part: QueuedRequest): void {
    askOneKey(part).then(
      (result) => passOn([result], [part]),
      (error: unknown) => part.fail(error),
    )
  }

  return async (call) => {
    if (performance.now() >= migratingUntil) {
      try {
        return await askRedis(call)
      } catch (error) {
        if (!isTryAgain(error)) throw error
        migratingUntil = performance.now() + migratingMs
      }
    }
    const results = call.asks.map((ask) =>
      ask.keys.length > 1 ? applyByShard(ask, (key) => key, submit) : askOneKey(ask),
    )
    // A failed call does not end the batch, which stays in flight until its last call ends.
    await Promise.allSettled(results)
    return Promise.all(results)
  }
}

/** ioredis retries on its own for a while, and then reports it as its last error. */
function isTryAgain(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^TRYAGAIN|^Too many Cluster redirections.*TRYAGAIN/.test(error.message)
  )
}
