import type { Check } from '../check.ts'
import { type Decision, decisionOf } from '../decision.ts'
import { andThen, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { Outcome } from '../store.ts'

/**
 * Asks about the checks that have a limit, and puts those of unlimited policies, about which no
 * store is asked, in their places.
 */
export function askLimited(
  checks: readonly Check[],
  ask: (limited: readonly Check[]) => MaybePromise<Decision>,
): MaybePromise<Decision> {
  const limited = checks.every(isLimited) ? checks : checks.filter(isLimited)
  if (limited.length === 0) return decisionOf(checks.map(unlimitedOutcome), 'store')
  if (limited === checks) return ask(checks)
  return andThen(ask(limited), (decision) => withUnlimited(decision, checks))
}

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

function withUnlimited(decision: Decision, checks: readonly Check[]): Decision {
  if (decision.outcomes.length === 0) return decision
  const limited = decision.outcomes.values()
  const outcomes = checks.map((check) => {
    const outcome = isLimited(check) ? limited.next().value : undefined
    return outcome ?? unlimitedOutcome(check)
  })
  return { ...decision, outcomes }
}
