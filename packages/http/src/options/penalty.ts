import type { Check, Decision, PenaltyOptions, Policy } from '@sluice/core'
import type { BoundPolicy, PolicyCheck } from './bound-policy.ts'
import type { GuardPenalty } from './option-table.ts'

export function corePenalty<Native>({ key: _, ...own }: GuardPenalty<Native>): PenaltyOptions {
  return own
}

/** Checks that do not count a denial as a strike yet, since that is decided later. */
export function withStrikesLater<Native>(
  checks: readonly PolicyCheck<Native>[],
): readonly PolicyCheck<Native>[] {
  return checks.map((check) =>
    check.policy.penalty ? { ...check, policy: madeOnce(check.policy, patientPolicies) } : check,
  )
}

/** Returns the strike for a refused request, unless it is already counted or the key is blocked. */
export function strikeDue<Native>(
  { outcomes }: Decision,
  checks: readonly PolicyCheck<Native>[],
  penalty: BoundPolicy<Native>,
): Check | undefined {
  const patient = patientPolicies.get(penalty.policy)
  if (!penalty.policy.countDenied || !patient) return undefined
  const index = checks.findIndex(({ policy }) => policy === patient)
  const check = checks[index]
  return check && outcomes[index]?.allowed ? { ...check, policy: penalty.policy } : undefined
}

/** Returns a check with which a penalty denies blocked keys but counts nothing. */
export function withoutStrike<C extends Check>(check: C): C {
  return { ...check, policy: madeOnce(check.policy, lenientPolicies) }
}

/** Maps each penalty to a copy that counts nothing: for retries, and for strikes counted later. */
const lenientPolicies = new WeakMap<Policy, Policy>()
const patientPolicies = new WeakMap<Policy, Policy>()

function madeOnce(policy: Policy, made: WeakMap<Policy, Policy>): Policy {
  const known = made.get(policy)
  if (known) return known
  const quiet = { ...policy, countDenied: false, penalty: undefined }
  made.set(policy, quiet)
  return quiet
}
