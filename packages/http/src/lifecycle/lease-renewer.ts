import { type Decision, type Limiter, maxTimerMs, type Policy } from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import type { Hold } from '../request/hold.ts'
import { UnderWay, type UnderWayEntry } from './under-way.ts'

/** Renewed this often while a lease runs, so that one renewal may fail. */
const renewalsPerLease = 3

interface Lease extends UnderWayEntry {
  readonly decision: Decision
}

/** Renews the leases of all requests by one timer, and releases each with its response. */
export class LeaseRenewer {
  readonly #limiter: Limiter
  readonly #periodMs: number
  readonly #kept = new UnderWay<Lease>()
  #timer: ReturnType<typeof setInterval> | undefined
  #isRenewing = false

  /** `undefined` where no policy lends anything. */
  static of(limiter: Limiter, policies: readonly Policy[]): LeaseRenewer | undefined {
    const leases = policies.filter(countsLeases).map(({ windowMs }) => windowMs)
    if (leases.length === 0) return undefined
    const periodMs = Math.max(1, Math.floor(Math.min(...leases) / renewalsPerLease))
    return new LeaseRenewer(limiter, Math.min(periodMs, maxTimerMs))
  }

  private constructor(limiter: Limiter, periodMs: number) {
    this.#limiter = limiter
    this.#periodMs = periodMs
  }

  /** Keeps the leases of a decision until its response is over; `undefined` when it has none. */
  keep(decision: Decision): Hold | undefined {
    // Leases of a policy in shadow may be known later.
    const lends =
      decision.shadow !== undefined ||
      decision.outcomes.some(({ policy, receipt }) => receipt && countsLeases(policy))
    if (!lends) return undefined
    const lease = { index: -1, decision }
    this.#kept.add(lease)
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => this.#renew(), this.#periodMs)
      // A lease that its process leaves behind runs out. Timers of other runtimes are numbers.
      this.#timer.unref?.()
    }
    const release = () => this.#release(lease)
    return { finish: release, abort: release }
  }

  #release(lease: Lease): unknown {
    if (!this.#kept.remove(lease)) return undefined
    if (this.#kept.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    return this.#limiter.release(lease.decision)
  }

  /** A store that is slower than the timer must not be asked more and more. */
  async #renew(): Promise<void> {
    if (this.#isRenewing) return
    this.#isRenewing = true
    try {
      await Promise.all(this.#kept.entries().map(({ decision }) => this.#limiter.renew(decision)))
    } finally {
      this.#isRenewing = false
    }
  }
}

function countsLeases(policy: Policy): boolean {
  return algorithmOf(policy).counts === 'leases'
}
