import type { Check } from '../model/check.ts'
import { type Decision, ShadowRun, withShadow } from '../model/decision.ts'
import { areEnforced, divideChecks } from '../policy/divide-checks.ts'
import { andThen } from '../runtime/maybe-promise.ts'
import type { Decider } from './decide.ts'

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
