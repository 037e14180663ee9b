import type { ControlCall } from '@sluice/core'
import type { RedisClient } from '../clients/redis-client.ts'
import { storeFailure } from '../replies/store-failure.ts'

const askTime = `local clock = redis.call('TIME') return clock[1] * 1000 + math.floor(clock[2] / 1000)`

/**
 * Sends a change that Redis makes before the deadline of its call, or never. All manual changes use
 * this: a frozen Redis runs whatever it received once it thaws.
 * @param send sends a script that starts with `lua/deadline.lua`; `untilMs` is its last argument
 */
export function sendInTime<T>(
  redis: RedisClient,
  { key, control }: { readonly key: string; readonly control: ControlCall },
  send: (untilMs: string) => Promise<T>,
): Promise<T> {
  // Each server of a Cluster has its own clock, so a key selects the server.
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

/** Returns whether Redis itself refused a change. */
function isAnswer(error: unknown): boolean {
  if (error instanceof Error && error.message.startsWith('LATE')) return false
  return storeFailure(error).code !== 'SLUICE_REDIS_CONNECTION'
}
