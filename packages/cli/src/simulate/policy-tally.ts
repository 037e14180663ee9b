import type { Check, Outcome, Policy } from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import type { PolicyReport } from '../report/simulation-report.ts'
import { DenialRuns } from './denial-runs.ts'

/** The share of a limit that is left at a near miss, at most. */
const nearMissShare = 0.2
/** Of a smaller limit a fifth is less than a unit. */
const minNearMissLimit = 5

/** One policy on the requests of a log. */
export class PolicyTally {
  readonly #policy: Policy
  readonly #denials = new DenialRuns()
  #checked = 0
  #denied = 0
  #nearMisses = 0

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
      if (check) this.#denials.deny(check.key, at.timeMs)
      return
    }
    if (check) this.#denials.allow(check.key)
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
      counts: algorithmOf(this.#policy).counts,
      limit: Number.isFinite(limit) ? limit : null,
      mode: enforcedShare === 0 ? 'shadow' : 'enforce',
      checked: this.#checked,
      denied: this.#denied,
      identitiesDenied: this.#denials.identities,
      nearMisses: this.#nearMisses,
      firstDenialMs: this.#denials.firstMs ?? null,
      longestDenialMs: this.#denials.longestMs,
    }
  }
}
