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
   * Maximum number of units that each policy gives back, a whole number ≥ 0. For callers that
   * reserve an estimate and return the rest. The refunds of one decision never give back more than
   * it took. A lease of a `concurrency` policy has no parts, so it stays until it is released.
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
  /** Takes `cost` units of every policy for `key`, or, when one denies, none. */
  consume(key: string, options?: CostOptions): Promise<Decision>
  /**
   * Answers as `consume` would, for the policies that are enforced, and changes nothing.
   * @example
   * const { allowed, outcomes } = await limiter.peek('tenant:acme', { limits: { api: 1000 } })
   */
  peek(key: KeyOrDigest, options?: PeekOptions): Promise<Peeked>
  /**
   * Takes units even above the limit, for costs that are known afterwards. The decision is always
   * allowed.
   */
  charge(key: string, options?: CostOptions): Promise<Decision>
  /**
   * Holds units for work whose cost is known later, which spends them while it runs. It holds
   * `units` of each policy with `reserve`, and takes `cost` units of every other policy; or, when
   * one denies, nothing.
   * @example
   * await using budget = await limiter.reserve('tenant:acme', { units: 800 })
   * for await (const chunk of answer) if (!budget.spend(tokensOf(chunk))) break
   */
  reserve(key: string, options: ReserveOptions): Promise<Reservation>
  /**
   * Gives back what a decision took, or `units` of it, as far as it still counts. It asks
   * for each unit once; nothing comes back after a reset or in a later window.
   * @example
   * const decision = await limiter.consume('user:42', { cost: estimate })
   * await limiter.refund(decision, { units: estimate - used })
   * @returns whether the store gave anything back: false for a decision that took nothing or was
   * refunded before, and when the store failed
   */
  refund(decision: Decision, options?: RefundOptions): Promise<boolean>
  /**
   * Ends the leases of a decision by `concurrency` policies, when its request is over; at most
   * once. Units of its other policies stay taken.
   * @returns whether a lease still ran: false for a decision without leases, one that was released
   * before, and when the store failed
   */
  release(decision: Decision): Promise<boolean>
  /**
   * Prolongs the leases of a decision whose request is still under way: call it several times a
   * `lease`.
   * @returns whether all of them still ran; false for a decision without leases too
   */
  renew(decision: Decision): Promise<boolean>
  /**
   * Forgets all that `key` has taken, and lifts its block. Rejects when the store failed, since no
   * fallback can replace a reset.
   * @returns whether there was anything: false for a key that has taken nothing that still counts
   * and is not blocked, such as a misspelt one
   */
  reset(key: KeyOrDigest): Promise<boolean>
  /**
   * Denies `key` from now on for this time: `'1h'`, or ms, ten years at most. It replaces the block
   * that the key may have. Other processes on the store obey too. Rejects without the option
   * `penalty`, and when the store failed. `unblock` lifts it, and so does `reset`.
   * @returns whether it took the place of a block that was in force
   */
  block(key: KeyOrDigest, duration: Duration): Promise<boolean>
  /**
   * Lifts the block of `key` and forgets its strikes. Units that it has taken stay taken. Rejects
   * as `block` does.
   */
  unblock(key: KeyOrDigest): Promise<boolean>
  /** Returns the health of the store, and counters of all limiters of this process that use it. */
  storeHealth(): StoreHealth
  /** Closes the store. */
  close(): Promise<void>
}

/** A limiter for callers that make checks themselves, such as guards. */
export interface CheckLimiter extends Limiter {
  /**
   * Consumes checks, for callers that resolve a key, a cost and a limit for each policy.
   * Synchronous when the store is. The checks are trusted: build them from `policies`. The caller
   * notifies observers, by a `DecisionNotifier`.
   * @param request the request of the checks, if other calls or other limiters of the store decide
   * it too: all of them together wait for one deadline at most
   */
  decide(checks: readonly Check[], request?: object): MaybePromise<Decision>
  /**
   * Reserves units for the checks whose policy has `reserve`, their cost, and consumes the others.
   * Divide an allowed reservation into budgets at once, and settle each of them.
   */
  reserveChecks(checks: readonly Check[]): Promise<Reserved>
  /** Peeks at checks. */
  peekChecks(checks: readonly Check[]): MaybePromise<Peeked>
  /** Takes the units of checks, even above the limit. */
  chargeChecks(checks: readonly Check[]): MaybePromise<Decision>
  /** Resets the keys of checks, as `reset` does. */
  resetChecks(checks: readonly Check[]): Promise<boolean>
  /** Blocks the keys of checks of a penalty, as `block` does. */
  blockChecks(checks: readonly BlockCheck[]): Promise<boolean>
  /**
   * Counts a denial against a penalty that could not be asked to count it: a check of it, at a cost
   * of one strike. Nobody waits for it.
   * @param beside the other checks of the request
   */
  strike(check: Check, beside?: readonly Check[]): void
}
