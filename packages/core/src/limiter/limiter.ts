import type { BlockCheck, Check } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { Store } from '../model/store.ts'
import type { StoreHealth } from '../model/store-health.ts'
import type { Duration } from '../options/duration.ts'
import type { Reservation } from '../reserve/reservation.ts'
import type { Reserved } from '../reserve/reserve.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { CostOptions, KeyOrDigest, PeekOptions, ReserveOptions } from './arguments.ts'
import type { Peeked } from './peek.ts'

/** Options of `refund`. */
export interface RefundOptions {
  /**
   * Maximum number of units that each policy gives back: a whole number ≥ 0. For callers who take
   * an estimate and return the rest. The refunds of a decision never exceed what it took. A lease
   * of a `concurrency` policy has no parts, so it stays until it is released.
   * @default all that are left
   */
  units?: number | undefined
  /** Policies that give back their units. @default all */
  policies?: readonly Policy[] | undefined
}

/** Policies + store + failure mode, free of HTTP. */
export interface Limiter {
  readonly policies: readonly Policy[]
  /** The policy that blocks keys; `undefined` without the option `penalty`. */
  readonly penalty: Policy | undefined
  /** Store of the counts. */
  readonly store: Store
  /** Takes `cost` units of every policy for `key`, or none if one denies. */
  consume(key: string, options?: CostOptions): Promise<Decision>
  /**
   * Answers as `consume` would, for the enforced policies, and changes nothing.
   * @example
   * const { allowed, outcomes } = await limiter.peek('tenant:acme', { limits: { api: 1000 } })
   */
  peek(key: KeyOrDigest, options?: PeekOptions): Promise<Peeked>
  /**
   * Takes units even beyond the limit, for costs that are known afterwards. The decision is always
   * allowed.
   */
  charge(key: string, options?: CostOptions): Promise<Decision>
  /**
   * Holds units for work that spends them while it runs. It holds `units` of each policy with
   * `reserve`, and takes `cost` units of every other policy; or nothing if one denies.
   * @example
   * await using budget = await limiter.reserve('tenant:acme', { units: 800 })
   * for await (const chunk of answer) if (!budget.spend(tokensOf(chunk))) break
   */
  reserve(key: string, options: ReserveOptions): Promise<Reservation>
  /**
   * Gives back what a decision took, or `units` of it, as far as they still count: none after a
   * reset or in a later window. Each unit is given back once.
   * @example
   * const decision = await limiter.consume('user:42', { cost: estimate })
   * await limiter.refund(decision, { units: estimate - used })
   * @returns whether anything was given back: false if the decision took nothing or was refunded
   * before, and if the store failed
   */
  refund(decision: Decision, options?: RefundOptions): Promise<boolean>
  /**
   * Ends the leases that a decision took from `concurrency` policies, once its request is over.
   * Units of other policies stay taken.
   * @returns whether a lease was still running: false for a decision without leases or one that was
   * released before, and if the store failed
   */
  release(decision: Decision): Promise<boolean>
  /**
   * Renews the leases of a decision whose request is still in progress. Call it several times per
   * `lease`.
   * @returns whether all of them were still running; false for a decision without leases
   */
  renew(decision: Decision): Promise<boolean>
  /**
   * Forgets everything that `key` has taken, and lifts its block. Rejects if the store failed: no
   * fallback can replace a reset.
   * @returns whether there was anything to reset: false for a key that is not blocked and has no
   * units that still count, such as a misspelled one
   */
  reset(key: KeyOrDigest): Promise<boolean>
  /**
   * Denies `key` in all processes on the store for a duration from now: `'1h'`, or ms, at most ten
   * years. It replaces an earlier block. `unblock` and `reset` lift it. Rejects without the option
   * `penalty`, and if the store failed.
   * @returns whether it replaced a block
   */
  block(key: KeyOrDigest, duration: Duration): Promise<boolean>
  /**
   * Lifts the block of `key` and forgets its strikes. Its units stay taken. Rejects as `block`
   * does.
   */
  unblock(key: KeyOrDigest): Promise<boolean>
  /** Returns the store's health, and counters of all limiters in this process that use it. */
  storeHealth(): StoreHealth
  /** Closes the store. */
  close(): Promise<void>
}

/** A limiter for callers that create checks themselves, such as guards. */
export interface CheckLimiter extends Limiter {
  /**
   * Consumes checks, for callers that resolve a key, a cost and a limit for each policy.
   * Synchronous if the store is. The checks are trusted: build them from `policies`. The caller
   * notifies observers with a `DecisionNotifier`.
   * @param request the request, if other calls or other limiters of the store decide it too: they
   * share one deadline
   */
  decide(checks: readonly Check[], request?: object): MaybePromise<Decision>
  /**
   * Reserves the cost of the checks whose policy has `reserve`, and consumes the others. Divide an
   * allowed reservation into budgets at once, and settle each of them.
   */
  reserveChecks(checks: readonly Check[]): Promise<Reserved>
  /** Peeks at checks. */
  peekChecks(checks: readonly Check[]): MaybePromise<Peeked>
  /** Takes the units of checks, even beyond the limit. */
  chargeChecks(checks: readonly Check[]): MaybePromise<Decision>
  /** Resets the keys of checks, as `reset` does. */
  resetChecks(checks: readonly Check[]): Promise<boolean>
  /** Blocks the keys of checks of a penalty, as `block` does. */
  blockChecks(checks: readonly BlockCheck[]): Promise<boolean>
  /**
   * Counts a denial against a penalty that did not take part in the decision. Nobody waits for it.
   * @param check a check of the penalty, with a cost of one strike
   * @param beside the other checks of the request
   */
  strike(check: Check, beside?: readonly Check[]): void
}
