import {
  createLimiter,
  type Decision,
  durationMs,
  type LimiterOptions,
  type LimiterSettings,
  memoryStore,
  type Policy,
  type PolicyOptions,
  type Store,
  unlimited,
} from '@sluice/core'
import { redisStore } from '@sluice/redis'

// Compiled by `tsc -p test`, and never run: each line below an expected error must be one, and nothing else may be.

const limiter = createLimiter({ limit: 100, window: '1m', store: memoryStore() })
createLimiter({ policies: [{ name: 'burst', limit: 10, window: 1_000 }] })

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

// Forms of a policy that the runtime takes.
declare const text: string
declare const seconds: number
createLimiter({ limit: unlimited, window: 60_000 })
createLimiter({ limit: 100, window: '1m', async: { maxUncounted: 50 } })
// @ts-expect-error
createLimiter({ limit: 100, window: '1m', async: { maxUncounted: '50' } })
// @ts-expect-error
createLimiter({ limit: 100, window: '1m', async: {} })
createLimiter({ limit: 5, window: '500ms', headroom: 0.1, name: 'burst' })
for (const window of ['10s', '15m', '1h', '1d', '2w'] as const) createLimiter({ limit: 5, window })
createLimiter({ limit: 5, window: `${seconds}s` })
createLimiter({ limit: 5, window: durationMs(text, 'WINDOW') })
createLimiter({ limit: 5, window: '1m', algorithm: 'token-bucket', burst: 10 })
createLimiter({ limit: 5, algorithm: 'concurrency', lease: '30s', retryAfter: 500 })
createLimiter({ limit: 5, window: '1m', penalty: { after: 3, within: '1m', for: '5m', max: '1h' } })
createLimiter({ penalty: { after: 'never' } })
createLimiter({ policies: [], failureMode: 'closed', penalty: { after: 'never' } })
limiter.block('user:42', '1h')
const shared = { limit: 5, window: '1m' } as const satisfies PolicyOptions
createLimiter({ policies: [shared, { ...shared, name: 'other' }] })
const settings: LimiterSettings = { store: memoryStore(), failureMode: 'open' }
createLimiter({ ...settings, ...shared })
export const withStore = (options: LimiterOptions) =>
  createLimiter({ store: memoryStore(), ...options })

// And those that it refuses.
// @ts-expect-error No policy.
createLimiter({})
// @ts-expect-error No window.
createLimiter({ limit: 3 })
// @ts-expect-error No limit.
createLimiter({ window: '1m' })
// @ts-expect-error No window in a list either.
createLimiter({ policies: [{ limit: 3 }] })
// @ts-expect-error No unit of that name.
createLimiter({ limit: 3, window: '1 minute' })
// @ts-expect-error No unit.
createLimiter({ limit: 3, window: '5' })
// @ts-expect-error A text that is known at run time only is read with durationMs.
createLimiter({ limit: 3, window: text })
// @ts-expect-error Any field of the shorthand beside a list.
createLimiter({ name: 'a', policies: [shared] })
// @ts-expect-error A lease takes the place of the window.
createLimiter({ limit: 3, window: '1m', algorithm: 'concurrency' })
// @ts-expect-error
createLimiter({ limit: 3, window: '1m', resolution: '1sec' })
// @ts-expect-error
createLimiter({ limit: 3, window: '1m', penalty: { after: 3, within: '1 minute', for: '5m' } })
// @ts-expect-error
createLimiter({ limit: 3, window: '1m', penalty: { after: 3, within: '1m' } })
// @ts-expect-error Within which time?
createLimiter({ limit: 3, window: '1m', penalty: { after: 3, for: '1m' } })
// @ts-expect-error Nothing leads to it.
createLimiter({ limit: 3, window: '1m', penalty: { after: 'never', for: '1m' } })
// @ts-expect-error No algorithm of a policy.
createLimiter({ limit: 3, window: '1m', algorithm: 'penalty' })
// @ts-expect-error
limiter.block('user:42', '1 hour')
