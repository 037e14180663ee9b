import { createLimiter, type Decision, memoryStore, type Policy, type Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'

// Compiled by `tsc -p test`, and never run: each line below an expected error must be one, and nothing else may be.

const limiter = createLimiter({ limit: 100, window: '1m', store: memoryStore() })
createLimiter({ policies: [{ name: 'burst', limit: 10, window: 1_000 }] })
createLimiter({ limit: 5, algorithm: 'concurrency', lease: '30s' })

const decision: Promise<Decision> = limiter.consume('user:42', { cost: 5 })
const policies: readonly Policy[] = limiter.policies
const store: Store = memoryStore({ maxKeys: 10 })
export const seen: readonly unknown[] = [decision, policies, store]

// Names of options.
// @ts-expect-error
createLimiter({ limit: 100, window: '1m', windowMs: 1_000 })
// @ts-expect-error What only HTTP has.
createLimiter({ limit: 100, window: '1m', key: () => 'ada' })
// @ts-expect-error
limiter.consume('user:42', { costs: 5 })
// @ts-expect-error
memoryStore({ max: 10 })

// Types of options.
// @ts-expect-error
createLimiter({ limit: '100', window: '1m' })
// @ts-expect-error Limits that depend on a request need one.
createLimiter({ limit: () => 5, window: '1m' })
// @ts-expect-error
createLimiter({ limit: 5, window: '1m', failureMode: 'ignore' })
// @ts-expect-error
createLimiter({ limit: 5, window: '1m', store: {} })
// @ts-expect-error A key is text.
limiter.consume(42)
// @ts-expect-error A decision is refunded, and not a key.
limiter.refund('user:42')
// @ts-expect-error
redisStore('redis://localhost')

// What is handed out is read, and not written.
// @ts-expect-error
;(await decision).allowed = true
