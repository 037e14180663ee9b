import type { Ask } from '@sluice/core'
import { type AskResult, passOn } from '../replies/reply.ts'
import type { Plan } from '../scripts/plans.ts'
import { mayHaveGrants } from '../scripts/usual-states.ts'
import { applyByShard } from './shards.ts'

/**
 * Asks Redis in one call. The keys of all asks live in one slot.
 * @param apart the grants of the only key, as they were read: then the call names that key alone
 */
export type AskRedis = (
  asks: readonly Ask[],
  plan?: Plan,
  apart?: string,
) => Promise<readonly AskResult[]>

/** Reads the grants of a key by a call of its own. */
type ReadHeldUnits = (key: string) => Promise<string>

/** Time (ms) for which a slot counts as moving after a TRYAGAIN. */
const migratingMs = 5_000

/**
 * A Cluster moves a slot key by key. Meanwhile it answers TRYAGAIN to a call if its keys are on
 * both nodes, or if some of them are new. Such a call certainly did not run, so it alone is
 * repeated. A wait would last as long as the move. A single key is always on one node, and the
 * client follows the redirection to it. So for some seconds each key of the slot is asked by
 * itself. A request with several keys is then decided key by key, with give-back. CLUSTERDOWN did
 * not run either; it fails its requests, since it lasts longer than they can wait.
 */
export function askAcrossMigration(askRedis: AskRedis, readHeldUnits: ReadHeldUnits): AskRedis {
  const askOneKey = askApart(askRedis, readHeldUnits)
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
    return askKeyByKey(asks, askOneKey)
  }
}

type AskOneKey = (asks: readonly Ask[]) => Promise<readonly AskResult[]>

/**
 * Asks about one key. Its grants have a key of their own, so TRYAGAIN may come here too, until both
 * have moved. TRYAGAIN means that the keys were on two nodes, or that one of them does not exist.
 * So no call finds both until they meet on the new node. Until then no process can change the
 * grants, so the answer stays true. A script that finds them beside its key goes by that instead.
 */
function askApart(askRedis: AskRedis, readHeldUnits: ReadHeldUnits): AskOneKey {
  return async (asks) => {
    try {
      return await askRedis(asks)
    } catch (error) {
      const key = asks[0]?.keys[0]
      if (key === undefined || !isTryAgain(error) || !asks.some(mayHaveGrants)) throw error
      return askRedis(asks, undefined, await readHeldUnits(key))
    }
  }
}

async function askKeyByKey(
  asks: readonly Ask[],
  askOneKey: AskOneKey,
): Promise<readonly AskResult[]> {
  const submit = (part: Ask) => {
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
