import { unknownOutcome } from '../engine/outcome.ts'
import type { Check } from '../model/check.ts'
import type { Decider } from '../model/decide.ts'
import { type Decision, decisionOf, ShadowRun, withShadow } from '../model/decision.ts'
import { areEnforced, divideChecks } from '../policy/divide-checks.ts'
import { andThen } from '../runtime/maybe-promise.ts'

/** Decides each policy in shadow alone, beside those that are enforced. Nobody waits for it. */
export const shadows: Decider = (next) => (op, checks, request) => {
  if (areEnforced(checks)) return next(op, checks, request)
  const { enforced, shadows: others } = divideChecks(checks)
  const decision = next(op, enforced, request)
  if (op === 'peek' || others.length === 0) return decision
  const run = (known: Decision): Decision =>
    withShadow(known, new ShadowRun(others.map((check: Check) => next(op, [check]))))
  // A request that is denied would not exist for the policies in shadow either.
  return andThen(decision, (known) => (known.allowed || op === 'charge' ? run(known) : known))
}

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
