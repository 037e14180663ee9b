import { algorithmOf } from '../algorithms/table.ts'
import type { Check } from '../check.ts'
import { type Decision, ShadowRun, withShadow } from '../decision.ts'
import { denialsOf } from '../denials/denials-of-store.ts'
import { type Duration, windowMsOf } from '../options/duration.ts'
import { warnOnce } from '../options/warn.ts'
import type { AskOp } from '../outage/fallback.ts'
import type { Policy } from '../policy/policy.ts'
import { accessTo } from '../resilience/access-to.ts'
import type { Caller } from '../resilience/pending-ask.ts'
import type { StoreHealth } from '../resilience/store-health.ts'
import { andThen, isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import type { Store, StoreOp } from '../store.ts'
import {
  type CostOptions,
  checkedKey,
  costOf,
  digestUnknown,
  type Keyed,
  type KeyOrDigest,
  keyedBy,
  penaltyMissing,
  storeError,
} from './calls.ts'
import { divideChecks } from './divide-checks.ts'
import { FollowUps, type RefundOptions } from './follow-ups.ts'
import { type LimiterOptions, setUpLimiter } from './limiter-options.ts'
import { notify } from './notify.ts'
import { joinObservers, listenToStore, notifyDecided } from './tell-observers.ts'
import { askLimited, isLimited } from './unlimited.ts'

/** Policies + store + failure mode, free of HTTP. */
export interface Limiter {
  readonly policies: readonly Policy[]
  /**
   * The policy that blocks keys, decided with the others; `undefined` without the option `penalty`.
   */
  readonly penalty: Policy | undefined
  /** Store of the counts. */
  readonly store: Store
  /** Takes `cost` units of every policy for `key`, or, when one denies, none. */
  consume(key: string, options?: CostOptions): Promise<Decision>
  /** Answers as `consume` would, for the policies that are enforced, and changes nothing. */
  peek(key: KeyOrDigest, options?: CostOptions): Promise<Decision>
  /**
   * Takes units without asking, for costs that are known afterwards. The decision is always
   * allowed.
   */
  charge(key: string, options?: CostOptions): Promise<Decision>
  /**
   * Gives back what a decision took, or `units` of it, as far as it still counts. It gives back
   * each unit at most once, and nothing after a reset or in a later window.
   * @example
   * const decision = await limiter.consume('user:42', { cost: estimate })
   * await limiter.refund(decision, { units: estimate - used })
   * @returns whether the store gave anything back: false for a decision that took nothing or was
   * refunded before, and when the store failed
   */
  refund(decision: Decision, options?: RefundOptions): Promise<boolean>
  /**
   * Ends the leases of a decision by `concurrency` policies, when its request is over; at most
   * once. What its other policies took stays taken.
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
   * Forgets all that `key` has taken, and lifts its block. Rejects when the store failed, since
   * nothing stands in for that.
   * @returns whether there was anything: false for a key that has taken nothing that still counts
   * and is not blocked, such as a misspelt one
   */
  reset(key: KeyOrDigest): Promise<boolean>
  /**
   * Denies `key` from now on for as long as that, in place of the block that it may have: `'1h'`,
   * or ms, ten years at most. Other processes on the store obey too. Rejects without the option
   * `penalty`, and when the store failed. `unblock` lifts it, and so does `reset`.
   * @returns whether it took the place of a block that was in force
   */
  block(key: KeyOrDigest, duration: Duration): Promise<boolean>
  /** Lifts the block of `key` and forgets its strikes; what it has taken stays. Rejects as `block` does. */
  unblock(key: KeyOrDigest): Promise<boolean>
  /**
   * `consume` for callers that resolve a key, a cost and a limit for each policy themselves.
   * Synchronous when the store is. The checks are trusted: build them from `policies`. Neither
   * `onDecision` nor `onShadow` is called: its caller knows for which request it asks, and does it
   * by `notifyDecided`.
   * @param request for which it is asked, where other limiters of the store, or other calls, may be
   * asked for it too: it waits for a store that does not answer for one deadline in all
   */
  decide(checks: readonly Check[], request?: object): MaybePromise<Decision>
  /** `charge` for the same callers: takes the units of the checks without asking. */
  chargeChecks(checks: readonly Check[]): MaybePromise<Decision>
  /**
   * `reset` for the same callers: forgets what the keys of the checks have taken, lifts their
   * blocks, and says whether anything was there.
   */
  resetChecks(checks: readonly Check[]): Promise<boolean>
  /**
   * Counts a denial against a penalty that could not be asked to count it: a check of it, at a cost
   * of one strike. Nobody waits for it.
   */
  strike(check: Check): void
  /**
   * The health of the store for all limiters of this process that share it, and its counters: for a
   * health check, or metrics.
   */
  storeHealth(): StoreHealth
  /** Closes the store. */
  close(): Promise<void>
}

/**
 * Makes a limiter.
 * @example
 * const limiter = createLimiter({ limit: 100, window: '1m' })
 * const decision = await limiter.consume('user:42')
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createLimiter(options: LimiterOptions): Limiter {
  const { policies, penalty, store, failureMode, deadlineMs, instances, fallback } =
    setUpLimiter(options)
  const access = accessTo(store, fallback)
  const denials = denialsOf(store)
  const onFailure = reportFailure
  const caller: Caller = { store, failureMode, deadlineMs, instances, denials, onFailure }
  const followUps = new FollowUps(access, caller)
  const observers = joinObservers(options)
  const all = penalty ? [...policies, penalty] : policies
  listenToStore(options, { policies: all, store, access })

  function ask(op: AskOp, asked: readonly Check[], request?: object): MaybePromise<Decision> {
    // To a penalty a charge would be so many denials.
    const checks = op === 'charge' ? asked.filter(isQuota) : asked
    return askLimited(checks, (limited) => access.ask({ op, checks: limited, caller, request }))
  }

  function reportFailure(op: StoreOp, error: unknown): void {
    const failure = storeError(error)
    if (observers.onStoreError) {
      notify(observers.onStoreError, { op, error: failure })
      return
    }
    warnOnce(
      `${failure.message}; failureMode '${failureMode}' decides instead (onStoreError tells of every failure)`,
      failure.code,
    )
  }

  function decide(checks: readonly Check[], request?: object): MaybePromise<Decision> {
    const { enforced, shadows } = divideChecks(checks)
    const decision = ask('consume', enforced, request)
    return shadows.length === 0 ? decision : andThen(decision, (known) => followed(known, shadows))
  }

  function consumed(checks: readonly Check[]): MaybePromise<Decision> {
    if (!observers.onDecision && !observers.onShadow) return decide(checks)
    const startedAt = monotonicMs()
    const decision = decide(checks)
    const isImmediate = !isPromise(decision)
    return andThen(decision, (known) => {
      const timing = { durationMs: monotonicMs() - startedAt, isImmediate }
      const place = { request: undefined, route: undefined, store, timing }
      notifyDecided(observers, { decision: known, checks, ...place })
      return known
    })
  }

  /** Returns whether the store found anything to change. */
  async function overwrite(op: 'reset' | 'block', checks: readonly Check[]): Promise<boolean> {
    if (checks.length === 0) return false
    try {
      const outcomes = await access.overwrite(op, checks, caller)
      return outcomes.some(({ allowed }) => allowed)
    } catch (error) {
      throw storeError(error)
    }
  }

  /**
   * A request that is denied would not exist for the policies in shadow either. Nobody waits for
   * those.
   */
  function followed(decision: Decision, shadows: readonly Check[]): Decision {
    if (!decision.allowed) return decision
    return withShadow(decision, new ShadowRun(shadows.map((check) => ask('consume', [check]))))
  }

  function chargeChecks(checks: readonly Check[]): MaybePromise<Decision> {
    const { enforced, shadows } = divideChecks(checks)
    return andThen(ask('charge', enforced), (decision) => {
      const charged = { ...decision, allowed: true, retryAfterMs: 0 }
      if (shadows.length === 0) return charged
      return withShadow(charged, new ShadowRun(shadows.map((check) => ask('charge', [check]))))
    })
  }

  function checksOf(keyed: Keyed, costs?: CostOptions): readonly Check[] {
    const cost = costs === undefined ? 1 : costOf(costs)
    return policies.map((policy) => ({ policy, ...keyed, cost, limit: policy.limit }))
  }

  /** Of the penalty too, where it has a say: a denied request is one strike, whatever it costs. */
  function allChecksOf(keyed: Keyed, costs?: CostOptions): readonly Check[] {
    const checks = checksOf(keyed, costs)
    return penalty ? [...checks, ...penaltyCheck(keyed, 1)] : checks
  }

  function penaltyCheck(keyed: Keyed, cost: number): readonly Check[] {
    if (!penalty) throw penaltyMissing()
    return [{ policy: penalty, ...keyed, cost, limit: penalty.limit }]
  }

  function peeked(key: KeyOrDigest, costs?: CostOptions): MaybePromise<Decision> {
    return andThen(keyedBy(key, store), (keyed = { key: nobody }) => {
      const checks = allChecksOf(keyed, costs)
      const asked = keyed.digest === undefined ? checks : checks.map(withoutShare)
      return ask('peek', divideChecks(asked).enforced)
    })
  }

  return {
    policies,
    penalty,
    store,
    decide,
    consume: (key, costs) => promised(() => consumed(allChecksOf({ key: checkedKey(key) }, costs))),
    peek: (key, costs) => promised(() => peeked(key, costs)),
    charge: (key, costs) => promised(() => chargeChecks(checksOf({ key: checkedKey(key) }, costs))),
    chargeChecks,
    strike: (check) =>
      void access.ask({ op: 'charge', checks: [check], caller, request: undefined }),
    refund: (decision, refund) => followUps.refund(decision, refund),
    release: (decision) => followUps.release(decision),
    renew: (decision) => followUps.renew(decision),

    async reset(key) {
      const keyed = await keyedBy(key, store)
      return keyed ? overwrite('reset', allChecksOf(keyed).filter(isLimited)) : false
    },

    async resetChecks(checks) {
      return overwrite('reset', checks.filter(isLimited))
    },

    async block(key, duration) {
      const keyed = await keyedBy(key, store)
      if (!penalty) throw penaltyMissing()
      const cost = windowMsOf(duration, 'duration')
      if (!keyed) throw digestUnknown()
      return overwrite('block', penaltyCheck(keyed, cost))
    },

    async unblock(key) {
      const keyed = await keyedBy(key, store)
      if (!penalty) throw penaltyMissing()
      return keyed ? overwrite('reset', penaltyCheck(keyed, 1)) : false
    },

    storeHealth: () => access.health(store),

    async close() {
      denials?.close()
      await store.close?.()
    },
  }
}

/**
 * Returns the result of a function as a promise. An async function would wrap the function's own
 * promise in another.
 */
function promised<T>(work: () => MaybePromise<T>): Promise<T> {
  try {
    const value = work()
    return isPromise(value) ? value : Promise.resolve(value)
  } catch (error) {
    return Promise.reject(error)
  }
}

/** For a question about a digest of which the store holds nothing: it is answered as for any new key. */
const nobody = '@digest'

/** A digest has no place among the keys of which a share is enforced: it is taken for one of them. */
function withoutShare(check: Check): Check {
  return { ...check, shadow: check.policy.enforcedShare === 0 }
}

function isQuota({ policy }: Check): boolean {
  return algorithmOf(policy).counts !== 'strikes'
}
