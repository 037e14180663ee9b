import type { Grants } from '../ledger/grants.ts'
import type { StoreWay } from '../ledger/local-units.ts'
import type { UncountedUnits } from '../ledger/uncounted-units.ts'
import { giveBack } from '../model/check.ts'
import { type Decide, type Decider, decisionOf } from '../model/decision.ts'
import type { Outcome } from '../model/store.ts'
import { andThen } from '../runtime/maybe-promise.ts'

/**
 * Answers checks by grants, and asks about the others alone. If one of the others denies, the units
 * come back to their grants.
 */
export function byGrants(grants: Grants, way: StoreWay): Decider {
  /** A denied request takes nothing. */
  function notTaken(outcome: Outcome): Outcome {
    const { receipt, remaining = 0, limit } = outcome
    if (!receipt) return outcome
    const isBack = giveBack({ ...receipt.check, receipt }, way.change) === true
    const left = isBack ? Math.min(limit, remaining + receipt.check.cost) : remaining
    return { ...outcome, remaining: left, receipt: undefined }
  }
  return (next) => {
    const askAndRefill: Decide = (op, checks, request) => {
      const decision = next(op, checks, request)
      for (const check of checks) grants.refill(op, check)
      return decision
    }
    return (op, checks, request) => {
      const [only] = checks
      if (only && checks.length === 1) {
        const outcome = grants.answer(op, only, way)
        return outcome ? decisionOf([outcome], checks, 'store') : askAndRefill(op, checks, request)
      }
      const here = checks.map((check) => grants.answer(op, check, way))
      const others = checks.filter((_, index) => !here[index])
      if (others.length === checks.length) return askAndRefill(op, checks, request)
      const answer =
        others.length === 0 ? decisionOf([], others, 'store') : askAndRefill(op, others, request)
      return andThen(answer, (decision) => {
        const { allowed, outcomes, source } = decision
        // The failure modes `open` and `closed` have no outcomes.
        if (outcomes.length === 0 && others.length > 0) return decision
        const fromStore = outcomes.values()
        const all = here.flatMap((one) => {
          const own = one && !allowed ? notTaken(one) : one
          return own ?? fromStore.next().value ?? []
        })
        return decisionOf(all, checks, source)
      })
    }
  }
}

/** Decides by the last known states of keys, and learns from the answers of the store. */
export function byUncounted(uncounted: UncountedUnits, way: StoreWay): Decider {
  return (next) => (op, checks, request) => {
    const outcomes = uncounted.answer(op, checks, way)
    if (outcomes) return decisionOf(outcomes, checks, 'store')
    const learners = checks.map((check) => uncounted.learnerOf(check, way))
    return andThen(next(op, checks, request), (decision) => {
      // A denial may be a remembered one, with numbers of an older answer.
      if (decision.source !== 'store' || !decision.allowed) return decision
      for (const [index, outcome] of decision.outcomes.entries()) learners[index]?.(outcome)
      return decision
    })
  }
}
