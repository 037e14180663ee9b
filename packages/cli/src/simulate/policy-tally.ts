import type { Check, Outcome, Policy } from '@sluice/core'
import { algorithmOf, usageOf } from '@sluice/core/backend'
import type { PolicyReport } from '../report/simulation-report.ts'
import { DenialRuns } from './denial-runs.ts'

/** A request that leaves more of the limit used is a near miss, as on the admin page. */
const nearMiss = 0.9

export class PolicyTally {
  readonly #policy: Policy
  readonly #denials = new DenialRuns()
  #checked = 0
  #denied = 0
  #nearMisses = 0

  constructor(policy: Policy) {
    this.#policy = policy
  }

  /** @param isAllowed true if all policies allowed the request */
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
    if (!at.isAllowed || this.#policy.penalty) return
    const { used = 0, capacity } = usageOf(outcome)
    if (used > capacity * nearMiss) this.#nearMisses += 1
  }

  get report(): PolicyReport {
    const { name, algorithm, limit, windowMs, calendar = null, enforcedShare } = this.#policy
    return {
      ...{ name, algorithm, windowMs, calendar },
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
