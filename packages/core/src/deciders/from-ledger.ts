import type { StoreWay } from '../ledger/local-units.ts'
import type { Prefetcher } from '../ledger/prefetcher.ts'
import type { Uncounted } from '../ledger/uncounted.ts'
import { giveBack, type Receipt } from '../model/check.ts'
import type { Decide, Decider } from '../model/decide.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { Outcome } from '../model/store.ts'
import { andThen } from '../runtime/maybe-promise.ts'

/**
 * Answers checks by grants, and asks about the others alone. If one of the others denies, the units
 * come back to their grants.
 */
export function byGrants(prefetcher: Prefetcher, caller: StoreWay): Decider {
  /** Returns whether the units are back in their grant. */
  const undo = (receipt: Receipt): boolean =>
    giveBack({ ...receipt.check, receipt }, caller.change) === true
  return (next) => {
    const askAndRefill: Decide = (op, checks, request) => {
      const decision = next(op, checks, request)
      for (const check of checks) prefetcher.refill(op, check)
      return decision
    }
    return (op, checks, request) => {
      const [only] = checks
      if (only && checks.length === 1) {
        const outcome = prefetcher.answer(op, only, caller)
        return outcome ? decisionOf([outcome], checks, 'store') : askAndRefill(op, checks, request)
      }
      const here = checks.map((check) => prefetcher.answer(op, check, caller))
      const others = checks.filter((_, index) => !here[index])
      if (others.length === checks.length) return askAndRefill(op, checks, request)
      if (others.length === 0) return decisionOf(here.flatMap(known), checks, 'store')
      const decision = askAndRefill(op, others, request)
      return andThen(decision, (known) => {
        // The failure modes `open` and `closed` have no outcomes.
        if (known.outcomes.length === 0) return known
        return decisionOf(joined(known, here, undo), checks, known.source)
      })
    }
  }
}

function known(outcome: Outcome | undefined): readonly Outcome[] {
  return outcome ? [outcome] : []
}

/** Puts the outcomes of grants in their places. A denied request takes nothing. */
function joined(
  decision: Decision,
  here: readonly (Outcome | undefined)[],
  undo: (receipt: Receipt) => boolean,
): readonly Outcome[] {
  const local = decision.allowed ? here : here.map((one) => one && notTaken(one, undo))
  const others = decision.outcomes.values()
  return local.flatMap((one) => known(one ?? others.next().value))
}

function notTaken(outcome: Outcome, undo: (receipt: Receipt) => boolean): Outcome {
  const { receipt, remaining = 0, limit } = outcome
  if (!receipt) return outcome
  const left = undo(receipt) ? Math.min(limit, remaining + receipt.check.cost) : remaining
  return { ...outcome, remaining: left, receipt: undefined }
}

/** Decides by the last known states of keys, and learns from the answers of the store. */
export function byKnownStates(uncounted: Uncounted, way: StoreWay): Decider {
  return (next) => (op, checks, request) => {
    const outcomes = uncounted.answer(op, checks, way)
    if (outcomes) return decisionOf(outcomes, checks, 'store')
    const questions = checks.map((check) => uncounted.begin(check, way))
    return andThen(next(op, checks, request), (decision) => {
      // A denial may be a remembered one, with numbers of an older answer.
      if (decision.source !== 'store' || !decision.allowed) return decision
      for (const [index, outcome] of decision.outcomes.entries()) {
        const question = questions[index]
        question?.key.learn(question.number, outcome)
      }
      return decision
    })
  }
}
