import { MemoryStore, rateLimit } from 'express-rate-limit'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { algorithmNames } from '../subjects/algorithm-policy.ts'
import { isRefusal } from '../subjects/rate-limiter-flexible-redis.ts'
import type { MemoryContender } from './memory-subject.ts'
import { sluiceDecide, sluiceMemory } from './sluice-memory.ts'

/** The default store of express-rate-limit, with the comparison that its middleware makes. */
const expressRateLimit: MemoryContender = {
  name: 'express-rate-limit MemoryStore',
  role: 'peer',
  open({ traffic, windowMs }) {
    const limit = traffic === 'denied' ? 0 : Number.MAX_SAFE_INTEGER
    const store = new MemoryStore()
    // The middleware is what tells its store the window.
    rateLimit({ windowMs, limit, store })
    return {
      check: async (key) => (await store.increment(key)).totalHits <= limit,
      close: () => store.shutdown(),
    }
  },
}

const rateLimiterFlexible: MemoryContender = {
  name: 'rate-limiter-flexible RateLimiterMemory',
  role: 'peer',
  open({ traffic, windowMs }) {
    const points = traffic === 'denied' ? 0 : Number.MAX_SAFE_INTEGER
    const limiter = new RateLimiterMemory({ points, duration: Math.ceil(windowMs / 1000) })
    return { check: (key) => limiter.consume(key).then(() => true, isRefusal) }
  },
}

export const memoryContenders: readonly MemoryContender[] = [
  sluiceMemory('sliding-log'),
  sluiceDecide('sliding-log'),
  sluiceMemory('sliding-log', 2),
  sluiceMemory('sliding-log', 4),
  ...algorithmNames
    .filter((algorithm) => algorithm !== 'sliding-log')
    .map((algorithm) => sluiceMemory(algorithm)),
  expressRateLimit,
  rateLimiterFlexible,
]
