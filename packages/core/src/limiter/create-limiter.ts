import { algorithmOf } from '../algorithms/table.ts'
import { decideByGrants } from '../deciders/decide-by-grants.ts'
import { isLimited, withUnlimited } from '../deciders/unlimited.ts'
import { isMemoryStore } from '../memory-store/memory-store.ts'
import type { Check } from '../model/check.ts'
import { type Decision, decisionOf, ShadowRun, withShadow } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { DecidingOp, StoreOp } from '../model/store.ts'
import type { DecisionTiming } from '../observers/decision-timer.ts'
import { joinObservers } from '../observers/join-observers.ts'
import { notify } from '../observers/notify.ts'
import { DecisionNotifier } from '../observers/notify-decided.ts'
import { windowMsOf } from '../options/duration.ts'
import { noteRelease } from '../options/release.ts'
import { warnOnce } from '../options/warn.ts'
import { areEnforced, divideChecks } from '../policy/divide-checks.ts'
import { accessTo } from '../resilience/access-to.ts'
import { PendingAsk } from '../resilience/pending-ask.ts'
import { andThen, isPromise, type MaybePromise, promised } from '../runtime/maybe-promise.ts'
import {
  type CostOptions,
  checkedKey,
  checkOf,
  checksOf,
  digestUnknown,
  type Keyed,
  type KeyOrDigest,
  keyedBy,
  penaltyMissing,
  storeError,
} from './arguments.ts'
import { FollowUps } from './follow-ups.ts'
import type { Limiter } from './limiter.ts'
import { type LimiterOptions, setUpLimiter } from './limiter-options.ts'
import { listenToStore } from './listen-to-store.ts'

/**
 * Makes a limiter.
 * @example
 * const limiter = createLimiter({ limit: 100, window: '1m' })
 * const decision = await limiter.consume('user:42')
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createLimiter(options: LimiterOptions): Limiter {
  noteRelease('@sluice/core')
  const { policies, penalty, store, failureMode, deadlineMs, instances, fallback } =
    setUpLimiter(options)
  const memory = isMemoryStore(store) ? store : undefined
  const access = accessTo(store, fallback)
  const caller = access.callerOf({
    ...{ store, failureMode, deadlineMs, instances },
    onFailure: reportFailure,
  })
  const prefetcher = memory || !policies.some(hasGrants) ? undefined : access.prefetcher
  const uncounted = memory || !policies.some(isAsync) ? undefined : access.uncounted
  const askUngranted = uncounted?.deciderOf(caller, askStore) ?? askStore
  const askLimited = prefetcher ? decideByGrants(prefetcher, caller, askUngranted) : askUngranted
  const followUps = new FollowUps(caller.change)
  const observers = joinObservers(options)
  const notifier = new DecisionNotifier(observers, store)
  const all = penalty ? [...policies, penalty] : policies
  const areAllPlain = all.every(isPlain)
  listenToStore(options, { policies: all, store, access })

  /** Asks about the checks that have a limit. */
  function ask(op: DecidingOp, checks: readonly Check[], request?: object): MaybePromise<Decision> {
    if (!checks.every(isLimited)) return askBesideUnlimited(op, checks, request)
    return checks.length === 0 ? decisionOf([], 'store') : askLimited(op, checks, request)
  }

  function askStore(
    op: DecidingOp,
    checks: readonly Check[],
    request?: object,
  ): MaybePromise<Decision> {
    // It answers at once, and is never away.
    if (memory) return decisionOf(memory.apply(op, checks), 'store')
    const pending = new PendingAsk(op, checks, caller)
    pending.request = request
    return access.ask(pending)
  }

  function askBesideUnlimited(
    op: DecidingOp,
    checks: readonly Check[],
    request?: object,
  ): MaybePromise<Decision> {
    const decision = ask(op, checks.filter(isLimited), request)
    return andThen(decision, (limited) => withUnlimited(limited, checks))
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
    return areEnforced(checks)
      ? ask('consume', checks, request)
      : decideWithShadows(checks, request)
  }

  function decideWithShadows(checks: readonly Check[], request?: object): MaybePromise<Decision> {
    const { enforced, shadows } = divideChecks(checks)
    const decision = ask('consume', enforced, request)
    return shadows.length === 0
      ? decision
      : andThen(decision, (known) => withShadowRun(known, shadows))
  }

  function consumeKey(key: string, costs?: CostOptions): MaybePromise<Decision> {
    const checks = allChecksOf({ key: checkedKey(key) }, costs)
    return notifier.isObserved ? decideObserved(checks) : decideOwn(checks)
  }

  /** Decides checks that this limiter made itself: its policies tell what they need. */
  function decideOwn(checks: readonly Check[]): MaybePromise<Decision> {
    return areAllPlain ? askLimited('consume', checks) : decide(checks)
  }

  function decideObserved(checks: readonly Check[]): MaybePromise<Decision> {
    const timing = notifier.time()
    const decision = decideOwn(checks)
    if (!isPromise(decision)) return observed(decision, checks, timing)
    timing.isImmediate = false
    return decision.then((known) => observed(known, checks, timing))
  }

  function observed(
    decision: Decision,
    checks: readonly Check[],
    timing: DecisionTiming,
  ): Decision {
    timing.end()
    notifier.notify({ decision, checks, timing, request: undefined, route: undefined })
    return decision
  }

  function peekKey(key: KeyOrDigest, costs?: CostOptions): MaybePromise<Decision> {
    return andThen(keyedBy(key, store), (keyed = { key: nobody }) => {
      const checks = allChecksOf(keyed, costs)
      const asked = keyed.digest === undefined ? checks : checks.map(withoutShare)
      return ask('peek', divideChecks(asked).enforced)
    })
  }

  function chargeKey(key: string, costs?: CostOptions): MaybePromise<Decision> {
    return chargeChecks(checksOf(policies, { key: checkedKey(key) }, costs))
  }

  /** Acts on a key at once if the store can, so that it decides later calls after this one. */
  function actOn(
    key: KeyOrDigest,
    act: (keyed: Keyed | undefined) => MaybePromise<boolean>,
  ): Promise<boolean> {
    return promised(() => andThen(keyedBy(key, store), act))
  }

  /** Returns whether the store found anything to change. */
  async function overwrite(op: 'reset' | 'block', checks: readonly Check[]): Promise<boolean> {
    if (checks.length === 0) return false
    try {
      uncounted?.forget(checks, caller)
      const asked = op === 'reset' && prefetcher ? prefetcher.forget(checks) : checks
      const outcomes = await access.overwrite(op, asked, caller)
      return outcomes.some(({ allowed }) => allowed)
    } catch (error) {
      throw storeError(error)
    }
  }

  /**
   * A request that is denied would not exist for the policies in shadow either. Nobody waits for
   * those.
   */
  function withShadowRun(decision: Decision, shadows: readonly Check[]): Decision {
    if (!decision.allowed) return decision
    return withShadow(decision, new ShadowRun(shadows.map((check) => ask('consume', [check]))))
  }

  function chargeChecks(checks: readonly Check[]): MaybePromise<Decision> {
    // To a penalty a charge would be so many denials.
    const { enforced, shadows } = divideChecks(checks.filter(isQuota))
    return andThen(ask('charge', enforced), (decision) => {
      const charged = { ...decision, allowed: true, retryAfterMs: 0 }
      if (shadows.length === 0) return charged
      return withShadow(charged, new ShadowRun(shadows.map((check) => ask('charge', [check]))))
    })
  }

  /** Of the penalty too, where it has a say: a denied request is one strike, whatever it costs. */
  function allChecksOf(keyed: Keyed, costs?: CostOptions): readonly Check[] {
    const checks = checksOf(policies, keyed, costs)
    return penalty ? [...checks, checkOf(penalty, keyed, 1)] : checks
  }

  return {
    policies,
    penalty,
    store,
    decide,
    consume: (key, costs) => promised(consumeKey, key, costs),
    peek: (key, costs) => promised(peekKey, key, costs),
    charge: (key, costs) => promised(chargeKey, key, costs),
    chargeChecks,
    strike: (check) => void access.ask(new PendingAsk('charge', [check], caller)),
    refund: (decision, refund) => followUps.refund(decision, refund),
    release: (decision) => followUps.release(decision),
    renew: (decision) => followUps.renew(decision),

    reset: (key) =>
      actOn(key, (keyed) =>
        keyed ? overwrite('reset', allChecksOf(keyed).filter(isLimited)) : false,
      ),

    async resetChecks(checks) {
      return overwrite('reset', checks.filter(isLimited))
    },

    blockChecks: (checks) => overwrite('block', checks),

    block: (key, duration) =>
      actOn(key, (keyed) => {
        if (!penalty) throw penaltyMissing()
        const blockMs = windowMsOf(duration, 'duration')
        if (!keyed) throw digestUnknown()
        return overwrite('block', [checkOf(penalty, keyed, blockMs)])
      }),

    unblock: (key) =>
      actOn(key, (keyed) => {
        if (!penalty) throw penaltyMissing()
        return keyed ? overwrite('reset', [checkOf(penalty, keyed, 1)]) : false
      }),

    storeHealth: () => access.health(store),

    async close() {
      caller.denials?.close()
      uncounted?.close(caller)
      if (prefetcher) await prefetcher.close(store)
      await store.close?.()
    },
  }
}

/** Key of a question about a digest that the store does not hold: it is answered as a new key. */
const nobody = '@digest'

/**
 * Enforces a policy for a digest if any key has it enforced: the digest alone does not tell whether
 * the key is among the share.
 */
function withoutShare(check: Check): Check {
  return { ...check, shadow: check.policy.enforcedShare === 0 }
}

/** Tells whether each check of a policy has a limit, and is enforced. */
function isPlain({ limit, enforcedShare }: Policy): boolean {
  return limit !== Number.POSITIVE_INFINITY && enforcedShare >= 1
}

function hasGrants({ prefetchMs }: Policy): boolean {
  return prefetchMs > 0
}

function isAsync({ maxUncounted }: Policy): boolean {
  return maxUncounted > 0
}

function isQuota({ policy }: Check): boolean {
  return algorithmOf(policy).counts !== 'strikes'
}
