import type { Check } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Outcome } from '../model/store.ts'

export function isLimited({ limit }: Check): boolean {
  return limit !== Number.POSITIVE_INFINITY
}

function unlimitedOutcome({ policy, limit }: Check): Outcome {
  return {
    policy,
    allowed: true,
    limit,
    remaining: limit,
    resetMs: undefined,
    retryAfterMs: 0,
    delayMs: 0,
    receipt: undefined,
  }
}

/**
 * Puts the outcomes of unlimited policies, about which no store is asked, in their places.
 * @param decision about the other checks
 */
export function withUnlimited(decision: Decision, checks: readonly Check[]): Decision {
  if (decision.outcomes.length === 0 && checks.some(isLimited)) return decision
  const limited = decision.outcomes.values()
  const outcomes = checks.map((check) => {
    const outcome = isLimited(check) ? limited.next().value : undefined
    return outcome ?? unlimitedOutcome(check)
  })
  return { ...decision, outcomes }
}
