import { RateLimiterMemory } from 'rate-limiter-flexible'
import { isRefusal } from '../subjects/rate-limiter-flexible-redis.ts'
import type { MemoryContender } from './memory-subject.ts'

export const rateLimiterFlexibleMemory: MemoryContender = {
  name: 'rate-limiter-flexible RateLimiterMemory',
  role: 'peer',
  open({ traffic, windowMs }) {
    const limiter = new RateLimiterMemory({
      points: traffic === 'denied' ? 0 : Number.MAX_SAFE_INTEGER,
      duration: Math.ceil(windowMs / 1000),
    })
    return { check: (key) => limiter.consume(key).then(() => true, isRefusal) }
  },
}
