import type { StoreWay } from '../ledger/local-units.ts'
import type { Uncounted } from '../ledger/uncounted.ts'
import type { Decider } from '../model/decide.ts'
import { decisionOf } from '../model/decision.ts'
import { andThen } from '../runtime/maybe-promise.ts'

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
