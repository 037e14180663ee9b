import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type LimiterSettings,
  type Optional,
  type PolicyFields,
} from '@sluice/core'

/** Options of which a test gives some, and its helper the rest. */
export interface SomeOptions extends Optional<PolicyFields>, LimiterSettings {
  readonly policies?: readonly Partial<PolicyFields>[] | undefined
}

/** A limiter whose options are put together: whether they fit is checked when it is made. */
export function limiterOf(options: SomeOptions): Limiter {
  return createLimiter(options as LimiterOptions)
}

/** A limiter that waits for its store for as long as a busy machine may need: what is tested is what the store decides. */
export function patientLimiter(options: SomeOptions): Limiter {
  return limiterOf({ deadlineMs: 60_000, ...options })
}
