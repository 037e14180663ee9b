import type { ControlCall } from '@sluice/core'
import type { RedisClient } from '../clients/redis-client.ts'
import { storeFailure } from '../replies/store-failure.ts'

const askTime = `local clock = redis.call('TIME') return clock[1] * 1000 + math.floor(clock[2] / 1000)`

/**
 * Sends a change that Redis makes by the deadline of its call, or never. All changes by hand go
 * this way: a frozen Redis runs what it has received when it thaws.
 * @param send sends a script that `lua/deadline.lua` begins, with `untilMs` as its last argument
 */
export function sendInTime<T>(
  redis: RedisClient,
  { key, control }: { readonly key: string; readonly control: ControlCall },
  send: (untilMs: string) => Promise<T>,
): Promise<T> {
  // Servers of a Cluster have clocks of their own, so a key says which of them is asked.
  const askMs = async () => {
    try {
      return Number(await redis.send('eval', [askTime, '1', key], key))
    } catch (error) {
      throw storeFailure(error)
    }
  }
  return control.send(askMs, async (untilMs) => {
    try {
      return await send(String(untilMs))
    } catch (error) {
      throw isAnswer(error) ? error : control.failure(storeFailure(error))
    }
  })
}

/** Tells whether Redis itself has refused a change. */
function isAnswer(error: unknown): boolean {
  if (error instanceof Error && error.message.startsWith('LATE')) return false
  return storeFailure(error).code !== 'SLUICE_REDIS_CONNECTION'
}
