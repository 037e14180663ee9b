import type { Check, Outcome } from '@sluice/core'

/** The outcome of a check that was not asked about: it does not deny, took nothing, and says nothing. */
export function unknownOutcome({ policy, limit }: Check): Outcome {
  return {
    policy,
    allowed: true,
    limit,
    remaining: undefined,
    resetMs: undefined,
    retryAfterMs: 0,
    delayMs: 0,
    receipt: undefined,
  }
}
