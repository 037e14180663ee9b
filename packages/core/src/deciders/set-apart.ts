import { unknownOutcome } from '../engine/outcome.ts'
import { areEnforced, type Check, divideChecks } from '../model/check.ts'
import {
  type Decider,
  type Decision,
  decisionOf,
  ShadowRun,
  withShadow,
} from '../model/decision.ts'
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
  if (checks.length > 0 && checks.every(isLimited)) return next(op, checks, request)
  const limited = checks.filter(isLimited)
  if (limited.length === 0) return withUnlimited(decisionOf([], limited, 'store'), checks)
  return andThen(next(op, limited, request), (known) =>
    // The failure modes `open` and `closed` have no outcomes.
    known.outcomes.length === 0 ? known : withUnlimited(known, checks),
  )
}

/** @param decision about the checks that have a limit */
function withUnlimited({ outcomes, source }: Decision, checks: readonly Check[]): Decision {
  const limited = outcomes.values()
  const all = checks.map((check) => {
    const outcome = isLimited(check) ? limited.next().value : undefined
    return outcome ?? { ...unknownOutcome(check), remaining: check.limit }
  })
  return decisionOf(all, checks, source)
}

export function isLimited({ limit }: Check): boolean {
  return limit !== Number.POSITIVE_INFINITY
}
