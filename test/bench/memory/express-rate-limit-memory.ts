import { MemoryStore, rateLimit } from 'express-rate-limit'
import type { MemoryContender } from './memory-subject.ts'

/** The default store of express-rate-limit, with the comparison that its middleware makes. */
export const expressRateLimitMemory: MemoryContender = {
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
