import { maxUnits } from '../algorithms/max-units.ts'
import { algorithmOf } from '../algorithms/table.ts'
import { appliedLimitsOf } from '../deciders/applied-limits.ts'
import { unlimitedChecks } from '../deciders/road.ts'
import { usageOf } from '../engine/outcome.ts'
import { bindingIndex, type Decide, type Decision, decisionOf } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { Outcome, Store } from '../model/store.ts'
import { andThen, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { Look } from './arguments.ts'

/**
 * The outcome of a policy for a request that was not made. If the limit depends on the request and
 * is unknown, so is everything that follows from it: there is no verdict.
 */
export interface PeekedOutcome extends Omit<Outcome, 'allowed' | 'limit' | 'retryAfterMs'> {
  readonly allowed: boolean | undefined
  readonly limit: number | undefined
  /** Units or strikes that count now; at most the limit. `undefined` if unknown. */
  readonly used: number | undefined
  readonly retryAfterMs: number | undefined
}

/** The answer of `peek`. */
export interface Peeked extends Omit<Decision, 'allowed' | 'outcomes'> {
  /** `undefined` if a limit is unknown and no policy certainly denies. */
  readonly allowed: boolean | undefined
  readonly outcomes: readonly PeekedOutcome[]
}

/**
 * Peeks at checks.
 * @param decide decides as a limiter does @default the store, without a failure mode
 */
export function peekAt(
  looks: readonly Look[],
  store: Store,
  decide: Decide = storeAlone(store),
): MaybePromise<Peeked> {
  const unknown = new Set<Policy>()
  const checks = looks.map((look) => {
    const { policy } = look
    const limit = look.limit ?? appliedLimitsOf(store).of(look)
    if (limit === undefined) unknown.add(policy)
    // Under a limit that nobody reaches, the remaining units show what is used.
    return { ...look, limit: limit ?? maxUnits(policy) }
  })
  return andThen(decide('peek', checks), (decision) => {
    // A region knows only its part of the units, and a fallback those of this process.
    const isWhole = decision.source === 'store' && store.region === undefined
    const outcomes = decision.outcomes.map((outcome): PeekedOutcome => {
      const used = isWhole ? usageOf(outcome).used : undefined
      if (!unknown.has(outcome.policy)) return { ...outcome, used }
      // A bucket drains by its limit.
      const isBucket = algorithmOf(outcome.policy).capacityLevel !== undefined
      const allowed = outcome.allowed ? undefined : false
      return { ...outcome, ...unknownVerdict, allowed, used: isBucket ? undefined : used }
    })
    if (outcomes.every(({ limit }) => limit !== undefined)) return { ...decision, outcomes }
    // Only a denial is certainly the tightest, under any value of the unknown limits.
    const denial = decision.allowed ? -1 : bindingIndex(decision.outcomes, checks)
    const { allowed, limit, remaining } = outcomes[denial] ?? unknownVerdict
    return { ...decision, outcomes, allowed, limit, remaining }
  })
}

const unknownVerdict = {
  allowed: undefined,
  limit: undefined,
  remaining: undefined,
  resetMs: undefined,
  retryAfterMs: undefined,
} as const

function storeAlone(store: Store): Decide {
  return unlimitedChecks((op, checks) =>
    andThen(store.apply(op, checks), (outcomes) => decisionOf(outcomes, checks, 'store')),
  )
}
