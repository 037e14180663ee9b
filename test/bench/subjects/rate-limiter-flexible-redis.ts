import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { OpenRedisSubject } from './redis-subject.ts'

/** rate-limiter-flexible: a fixed window by SET NX, INCRBY and PTTL, in one script call a request. */
export const rateLimiterFlexibleRedis: OpenRedisSubject = open('rate-limiter-flexible', {})

/** The same, told to remember in this process who is refused, which its documentation advises against floods. */
export const rateLimiterFlexibleBlocking: OpenRedisSubject = open(
  'rate-limiter-flexible (inMemoryBlock)',
  { inMemoryBlockOnConsumed: 1 },
)

function open(name: string, options: { inMemoryBlockOnConsumed?: number }): OpenRedisSubject {
  return async ({ connect, traffic, windowMs }) => {
    const keyPrefix = `bench.${name.replaceAll(/[^a-zA-Z-]+/g, '')}`
    const limiter = new RateLimiterRedis({
      storeClient: await connect(),
      keyPrefix,
      points: traffic === 'denied' ? 1 : Number.MAX_SAFE_INTEGER,
      duration: Math.ceil(windowMs / 1000),
      ...options,
    })
    return {
      name,
      // What is not the default is shown, and is not whom the best peer is chosen from.
      role: 'inMemoryBlockOnConsumed' in options ? 'reference' : 'peer',
      prefix: keyPrefix,
      check: (key) => limiter.consume(key).then(passes, isRefusal),
    }
  }
}

function passes(): boolean {
  return true
}

/** It rejects with a result where it refuses, and with an error where it failed. */
export function isRefusal(reason: unknown): boolean {
  if (reason instanceof RateLimiterRes) return false
  throw reason
}
