import type { EnforcedShare, MaybePromise, PolicyOptions } from '@sluice/core'
import type { KeyResolver } from './keys/key-resolver.ts'
import type { LimitOption } from './limits/limit-source.ts'
import type { PerRequest } from './per-request.ts'
import type { SettlementOptions } from './settlement/settlement-options.ts'

/** A quota of HTTP requests: what it counts may depend on the request. */
export interface HttpPolicyOptions<Native>
  extends Omit<PolicyOptions, 'limit' | 'enforce'>,
    SettlementOptions<Native> {
  /**
   * Units that one key may take in any window: a whole number ≥ 0, `unlimited`, a function that finds it, or a limit that moves by itself:
   * `tiers(…)`, `schedule(…)`, `adaptive(…)`.
   */
  limit: LimitOption<Native>
  /** The limit where a limit function yields neither a whole number ≥ 0 nor `unlimited`; needed beside such a function. */
  defaultLimit?: number
  /** Who is counted. @default the guard's `key` */
  key?: KeyResolver<Native>
  /** Units that a request takes: a whole number ≥ 0, or a function that finds it. @default the guard's `cost` */
  cost?: PerRequest<Native, number>
  /**
   * For whom the policy is enforced; for everybody else it is in shadow. A share of the keys, or a function of the request.
   * @default everybody
   */
  enforce?: EnforcedShare | ((native: Native) => MaybePromise<boolean>)
}
