import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { OpenRedisSubject } from './redis-subject.ts'

/**
 * rate-limiter-flexible: a fixed window by SET NX, INCRBY and PTTL, in one script call a request.
 * @param options `inMemoryBlockOnConsumed`: to remember in this process who is refused, which its documentation advises against floods
 */
export function rateLimiterFlexibleRedis(
  options: { inMemoryBlockOnConsumed?: number } = {},
): OpenRedisSubject {
  return async ({ connect, prefix, traffic, windowMs }) => {
    const limiter = new RateLimiterRedis({
      ...{ storeClient: await connect(), keyPrefix: prefix },
      points: traffic === 'denied' ? 1 : Number.MAX_SAFE_INTEGER,
      duration: Math.ceil(windowMs / 1000),
      ...options,
    })
    return { prefix, check: (key) => limiter.consume(key).then(() => true, isRefusal) }
  }
}

/** It rejects with a result where it refuses, and with an error where it failed. */
export function isRefusal(reason: unknown): boolean {
  if (reason instanceof RateLimiterRes) return false
  throw reason
}
