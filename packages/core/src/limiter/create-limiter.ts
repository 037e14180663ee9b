import { algorithmOf } from '../algorithms/table.ts'
import { type BlockCheck, type Check, isLimited } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import { noteRelease } from '../options/warn.ts'
import { Reservations } from '../reserve/reserve.ts'
import { andThen, type MaybePromise, promised } from '../runtime/maybe-promise.ts'
import {
  blockOf,
  type CostOptions,
  checkedKey,
  checkOf,
  checksOf,
  type Keyed,
  type KeyOrDigest,
  keyedBy,
  type Look,
  readPeekOptions,
  readReserveOptions,
  somePenalty,
} from './arguments.ts'
import { connect } from './connect.ts'
import { followUps } from './follow-ups.ts'
import type { CheckLimiter, Limiter } from './limiter.ts'
import { type LimiterOptions, setUpLimiter } from './limiter-options.ts'
import { peekAt } from './peek.ts'

/**
 * Creates a limiter.
 * @example
 * const limiter = createLimiter({ limit: 100, window: '1m' })
 * const decision = await limiter.consume('user:42')
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function createLimiter(options: LimiterOptions): Limiter {
  return createCheckLimiter(options)
}

/**
 * Creates a limiter for callers that create checks themselves.
 * @param limitsPerRequest for each policy, whether its limit comes with the checks and `limit` is
 * only a placeholder. Further values are for policies of other limiters
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function createCheckLimiter(
  options: LimiterOptions,
  limitsPerRequest: readonly boolean[] = [],
): CheckLimiter {
  noteRelease('@sluice/core')
  const setup = setUpLimiter(options, limitsPerRequest)
  const { policies, penalty, store } = setup
  const { road, caller, notifier } = connect(options, setup)
  const { decide, decideOwn, overwrite } = road
  const changes = followUps(caller.change)
  const reservations = new Reservations({ caller, decide, refund: changes.refund })
  function consumeKey(key: string, costs?: CostOptions): MaybePromise<Decision> {
    const checks = allChecksOf({ key: checkedKey(key) }, costs)
    if (notifier.isObserved) return notifier.observe(decideOwn, checks)
    return decideOwn('consume', checks)
  }

  const peekLooks = (looks: readonly Look[]) => peekAt(looks, store, decide)

  function chargeChecks(checks: readonly Check[]): MaybePromise<Decision> {
    // A penalty would take the units for denials.
    const quotas = checks.filter(({ policy }) => algorithmOf(policy).counts !== 'strikes')
    const charged = decide('charge', quotas)
    return andThen(charged, (decision) => ({ ...decision, allowed: true, retryAfterMs: 0 }))
  }

  const resetChecks = (checks: readonly Check[]) =>
    overwrite({ op: 'reset', checks: checks.filter(isLimited) })

  const blockChecks = (checks: readonly BlockCheck[]) => overwrite({ op: 'block', checks })

  /** Acts synchronously if the store can, so that later calls are decided after this one. */
  function actOn(
    key: KeyOrDigest,
    act: (keyed: Keyed | undefined) => MaybePromise<boolean>,
  ): Promise<boolean> {
    return promised(() => andThen(keyedBy(key, store), act))
  }

  /** Includes the penalty: a denied request is one strike, whatever its cost. */
  function allChecksOf(keyed: Keyed, costs?: CostOptions): readonly Check[] {
    const checks = checksOf(policies, keyed, costs)
    return penalty ? [...checks, checkOf(penalty, keyed, 1)] : checks
  }

  return {
    policies,
    penalty,
    store,
    async reserve(key, options) {
      const { units, step, cost } = readReserveOptions(options, policies)
      const checks = allChecksOf({ key: checkedKey(key) }, { cost })
      const reserving = checks.map((check) =>
        check.policy.reserveMs > 0 ? { ...check, cost: units } : check,
      )
      const timing = notifier.time()
      const { decision, budget } = await reservations.reserve(reserving)
      timing.isImmediate = false
      timing.end()
      notifier.notify({ decision, checks: reserving, timing, request: undefined, route: undefined })
      return budget(reserving, { units, step })
    },
    reserveChecks: (checks) => reservations.reserve(checks),
    decide: road.consume,
    consume: (key, costs) => promised(consumeKey, key, costs),
    peek: (key, options = {}) =>
      promised(() => {
        const { cost, lookOf } = readPeekOptions(options, policies)
        return andThen(keyedBy(key, store), (keyed = { key: nobody }) =>
          peekLooks(allChecksOf(keyed, { cost }).map(lookOf)),
        )
      }),
    peekChecks: peekLooks,
    charge: (key, costs) =>
      promised(() => chargeChecks(checksOf(policies, { key: checkedKey(key) }, costs))),
    chargeChecks,
    strike: road.strike,
    ...changes,
    reset: (key) => actOn(key, (keyed) => resetChecks(keyed ? allChecksOf(keyed) : [])),
    resetChecks,
    block: (key, duration) =>
      actOn(key, (keyed) => blockChecks([blockOf(penalty, keyed, duration)])),
    blockChecks,
    async unblock(key) {
      const policy = somePenalty(penalty)
      return actOn(key, (keyed) => resetChecks(keyed ? [checkOf(policy, keyed, 1)] : []))
    },
    storeHealth: () => caller.shared.health(store),
    async close() {
      // Requests that follow this call find the store closed.
      const closing = [reservations.close(), road.close()]
      if (closing.some((work) => work)) await Promise.all(closing)
      await store.close?.()
    },
  }
}

/** Key that stands for a digest that the store does not have: it is answered like a new key. */
const nobody = '@digest'
