import {
  createLimiter,
  type Decision,
  durationMs,
  type LimiterOptions,
  type LimiterSettings,
  memoryStore,
  type PolicyOptions,
} from '@sluice/core'

// Compiled by `tsc -p test`, and never run: each line below an expected error must be one, and nothing else may be.

const limiter = createLimiter({ limit: 100, window: '1m', store: memoryStore() })

const decision: Promise<Decision> = limiter.consume('user:42', { cost: 5 })

// Names of options.
// @ts-expect-error
createLimiter({ limit: 100, window: '1m', windowMs: 1_000 })
// @ts-expect-error What only HTTP has.
createLimiter({ limit: 100, window: '1m', key: () => 'ada' })

// What is handed out is read, and not written.
// @ts-expect-error
;(await decision).allowed = true

// Forms of a policy that the runtime takes.
declare const text: string
declare const seconds: number
for (const window of ['10s', '15m', '1h', '1d', '2w'] as const) createLimiter({ limit: 5, window })
createLimiter({ limit: 5, window: `${seconds}s` })
createLimiter({ limit: 5, window: durationMs(text, 'WINDOW') })
createLimiter({ penalty: { after: 'never' } })
createLimiter({ policies: [], failureMode: 'closed', penalty: { after: 'never' } })
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
createLimiter({ limit: 3, window: '1m', penalty: { after: 3, within: '1m' } })
// @ts-expect-error Within which time?
createLimiter({ limit: 3, window: '1m', penalty: { after: 3, for: '1m' } })
// @ts-expect-error Nothing leads to it.
createLimiter({ limit: 3, window: '1m', penalty: { after: 'never', for: '1m' } })
