import type { MaybePromise, PolicyOptions, unlimited } from '@sluice/core'
import type { KeyResolver } from './keys/key-resolver.ts'
import type { LimitSource } from './limits/limit-source.ts'

/** A limit as a function of the request yields it. */
export type LimitValue = number | typeof unlimited

/** A value, or a function of the framework's request that finds it. */
export type PerRequest<Native, Value> = Value | ((native: Native) => MaybePromise<Value>)

/** A limit, or how it is found: a function of the framework's request, `tiers(…)`, `schedule(…)` or `adaptive(…)`. */
export type LimitOption<Native> = PerRequest<Native, LimitValue> | LimitSource<Native>

/** A quota of HTTP requests: what it counts may depend on the request. */
export interface HttpPolicyOptions<Native> extends Omit<PolicyOptions, 'limit'> {
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
}
