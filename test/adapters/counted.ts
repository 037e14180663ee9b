import { createLimiter, memoryStore, type PolicyOptions } from '@sluice/core'

/** A policy that counts ada in a store of its own, and how many of its units are taken. */
export function counted<P extends PolicyOptions & { readonly limit: number }>(policy: P) {
  const store = memoryStore()
  const limiter = createLimiter({ ...policy, store })
  return {
    options: { ...policy, store, key: () => 'ada' },
    used: async () => policy.limit - ((await limiter.peek('ada')).outcomes[0]?.remaining ?? 0),
  }
}

export const inFlight = { name: 'inflight', algorithm: 'concurrency', limit: 2 } as const
