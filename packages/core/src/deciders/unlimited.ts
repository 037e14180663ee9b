import { unknownOutcome } from '../engine/outcome.ts'
import type { Check } from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import { andThen } from '../runtime/maybe-promise.ts'
import type { Decider } from './decide.ts'

/** Answers checks without a limit: no store is asked about them. */
export const unlimitedChecks: Decider = (next) => (op, checks, request) => {
  if (checks.every(isLimited)) {
    return checks.length === 0 ? decisionOf([], checks, 'store') : next(op, checks, request)
  }
  const limited = checks.filter(isLimited)
  const decision =
    limited.length === 0 ? decisionOf([], limited, 'store') : next(op, limited, request)
  return andThen(decision, (known) => withUnlimited(known, checks))
}

export function isLimited({ limit }: Check): boolean {
  return limit !== Number.POSITIVE_INFINITY
}

/** @param decision about the checks that have a limit */
function withUnlimited(decision: Decision, checks: readonly Check[]): Decision {
  if (decision.outcomes.length === 0 && checks.some(isLimited)) return decision
  const limited = decision.outcomes.values()
  const outcomes = checks.map((check) => {
    const outcome = isLimited(check) ? limited.next().value : undefined
    return outcome ?? { ...unknownOutcome(check), remaining: check.limit }
  })
  return decisionOf(outcomes, checks, decision.source)
}
