import type { EnforcedShare, MaybePromise, PolicyFields, WindowForm } from '@sluice/core'
import type { KeyResolver } from '../keys/resolver.ts'
import type { LimitOption, LimitSource, LimitValue } from '../limits/source.ts'
import type { PerRequest } from '../request/user-functions.ts'
import type { SettlementOptions } from './settlement.ts'

/** The fields of a policy of HTTP requests, whether or not they fit together. */
export interface HttpPolicyFields<Native>
  extends Omit<PolicyFields, 'limit' | 'enforce'>,
    SettlementOptions<Native> {
  /**
   * Units that one key may take in any window: a whole number ≥ 0, `unlimited`, or a function that
   * returns one of them. `tiers(…)`, `schedule(…)` and `adaptive(…)` are limits that move by
   * themselves.
   */
  limit: LimitOption<Native>
  /**
   * The limit if a limit function returns neither a whole number ≥ 0 nor `unlimited`. Required
   * beside such a function.
   */
  defaultLimit?: number | undefined
  /** The client that is counted. @default the guard's `key` */
  key?: KeyResolver<Native> | undefined
  /** Units that a request takes: a whole number ≥ 0, or a function. @default the guard's `cost` */
  cost?: PerRequest<Native, number> | undefined
  /**
   * The clients for which the policy is enforced: a share of the keys, or a function of the
   * request. For all others it is in shadow.
   * @default everybody
   */
  enforce?: EnforcedShare | ((native: Native) => MaybePromise<boolean>) | undefined
}

/**
 * A function may yield no limit, so a default stands beside it. The form without a function is
 * last, because compilers name it in errors.
 */
export type LimitForm<Native> =
  | { limit: LimitOption<Native>; defaultLimit: number }
  | { limit: LimitValue | LimitSource<Native>; defaultLimit?: number | undefined }

/** A quota of HTTP requests. Its options may depend on the request. */
export type HttpPolicyOptions<Native> = Omit<
  HttpPolicyFields<Native>,
  keyof WindowForm | keyof LimitForm<Native>
> &
  WindowForm &
  LimitForm<Native>

/** Fields that are shorthand for a single policy. The others are settings of a guard too. */
export type Shorthand = Exclude<
  keyof HttpPolicyFields<never>,
  'key' | 'cost' | 'chargeWhen' | 'refundWhen' | 'failureMode'
>
