import type { Check, Outcome, Policy } from '@sluice/core'
import type { PolicyReport } from '../report/simulation-report.ts'

/** Identities of one policy that are told apart. */
const maxIdentities = 1_000_000
/** The share of a limit that is left at a near miss, at most. */
const nearMissShare = 0.2
/** Of a smaller limit a fifth is less than a unit. */
const minNearMissLimit = 5

/** One policy on the requests of a log. */
export class PolicyTally {
  readonly #policy: Policy
  readonly #identities = new Set<string>()
  #checked = 0
  #denied = 0
  #nearMisses = 0
  #firstDenialMs: number | undefined

  constructor(policy: Policy) {
    this.#policy = policy
  }

  /** @param isAllowed tells whether the request was allowed, by all policies */
  add(
    outcome: Outcome,
    check: Check | undefined,
    at: { timeMs: number; isAllowed: boolean },
  ): void {
    this.#checked += 1
    if (!outcome.allowed) {
      this.#denied += 1
      this.#firstDenialMs ??= at.timeMs
      if (check && this.#identities.size < maxIdentities) this.#identities.add(check.key)
      return
    }
    const { limit, remaining } = outcome
    const isQuota = this.#policy.penalty === undefined && limit >= minNearMissLimit
    if (at.isAllowed && isQuota && remaining !== undefined && remaining <= limit * nearMissShare) {
      this.#nearMisses += 1
    }
  }

  get report(): PolicyReport {
    const { name, algorithm, limit, windowMs, enforcedShare } = this.#policy
    return {
      ...{ name, algorithm, windowMs },
      limit: Number.isFinite(limit) ? limit : null,
      mode: enforcedShare === 0 ? 'shadow' : 'enforce',
      checked: this.#checked,
      denied: this.#denied,
      identitiesDenied: this.#identities.size,
      nearMisses: this.#nearMisses,
      firstDenialMs: this.#firstDenialMs ?? null,
    }
  }
}
