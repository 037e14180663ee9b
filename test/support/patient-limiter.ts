import {
  type Check,
  type CheckLimiter,
  createCheckLimiter,
  type LimiterOptions,
  type LimiterSettings,
  type Optional,
  type Policy,
  type PolicyFields,
} from '@sluice/core'

/** Options of which a test gives some, and its helper the rest. */
export interface SomeOptions extends Optional<PolicyFields>, LimiterSettings {
  readonly policies?: readonly Partial<PolicyFields>[] | undefined
}

/** A limiter whose options are put together: whether they fit is checked when it is made. */
export function limiterOf(options: SomeOptions): CheckLimiter {
  return createCheckLimiter(options as LimiterOptions)
}

/** A limiter that waits for its store for as long as a busy machine may need: what is tested is what the store decides. */
export function patientLimiter(options: SomeOptions): CheckLimiter {
  return limiterOf({ deadlineMs: 60_000, ...options })
}

/** A check of one policy of a limiter: of one unit of the key `k`, unless other values are given. */
export function checkOf(
  policy: Policy | undefined,
  own: Partial<Pick<Check, 'key' | 'cost' | 'limit'>> = {},
): Check {
  if (!policy) throw new Error('there is no such policy')
  return { policy, key: 'k', cost: 1, limit: policy.limit, ...own }
}
