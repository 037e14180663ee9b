import type { Check, Decision, Policy, PolicyOptions } from '@sluice/core'
import { fleetKey } from './flag.ts'
import { RecentUnits } from './recent-units.ts'

export interface Quota {
  readonly limit: number
  readonly windowMs: number
}

/**
 * Time (ms) for which a call's units outlive a window if its process is silent: the call may still
 * arrive, or be reported.
 */
export const graceMs = 30_000

/**
 * The units of one quota. Units of calls in flight are renewed, and given back at the end. Units of
 * finished calls expire after a window. Their sum never exceeds the limit.
 */
export class QuotaUnits {
  /** Units of this process's finished calls. */
  readonly recent: RecentUnits
  readonly #quota: Quota
  readonly #underWay: Policy
  readonly #over: Policy
  /** Units of finished calls, as last seen. */
  #overUnits = 0

  constructor(quota: Quota, underWay: Policy, over: Policy) {
    this.recent = new RecentUnits(quota.windowMs)
    this.#quota = quota
    this.#underWay = underWay
    this.#over = over
  }

  /**
   * Returns checks that take units in addition to those of finished calls, and read the latter in
   * the same step.
   */
  takeChecks(cost: number): readonly Check[] {
    const limit = Math.max(0, this.#quota.limit - this.#overUnits)
    return [
      { policy: this.#underWay, key: fleetKey, cost, limit },
      { policy: this.#over, key: fleetKey, cost: 0, limit: this.#quota.limit },
    ]
  }

  underWayCheck(cost: number): Check {
    return { policy: this.#underWay, key: fleetKey, cost, limit: this.#quota.limit }
  }

  overCheck(units: number): Check {
    const { limit } = this.#quota
    return { policy: this.#over, key: fleetKey, cost: Math.min(units, limit), limit }
  }

  /** Reads the answer to `takeChecks`: less, the same or more room than it assumed. */
  read({ outcomes }: Decision): 'less' | 'same' | 'more' {
    const before = this.#overUnits
    const over = outcomes.find(({ policy }) => policy.id === this.#over.id)
    if (over?.remaining !== undefined) this.#overUnits = over.limit - over.remaining
    if (this.#overUnits === before) return 'same'
    return this.#overUnits > before ? 'less' : 'more'
  }

  /**
   * True if the units that a decision took are within the limit. Read it before other checks of the
   * decision.
   */
  holds({ outcomes }: Decision): boolean {
    const taken = outcomes.find(({ policy }) => policy.id === this.#underWay.id)
    if (taken?.remaining === undefined) return false
    return taken.limit - taken.remaining + this.#overUnits <= this.#quota.limit
  }
}

/** The two policies of a quota, in the order of the constructor. */
export function quotaPolicies(name: string, { limit, windowMs }: Quota): readonly PolicyOptions[] {
  const one = { algorithm: 'concurrency', limit } as const
  return [
    { ...one, name: `outbound.${name}.${windowMs}.underway`, lease: `${windowMs + graceMs}ms` },
    // The store's clock has whole milliseconds, so an answer may seem a millisecond older.
    { ...one, name: `outbound.${name}.${windowMs}.over`, lease: `${windowMs + 1}ms` },
  ]
}
