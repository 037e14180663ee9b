import type { Check } from '@sluice/core'
import type { Expected, GivenBack, Life } from './life.ts'

interface Lease {
  readonly number: number
  readonly units: number
  endsAt: number
}

/** A list of leases. */
export class LeaseLife implements Life {
  #leases: Lease[] = []
  #taken = 0

  copy(): Life {
    const copy = new LeaseLife()
    copy.#leases = this.#leases.map((lease) => ({ ...lease }))
    copy.#taken = this.#taken
    return copy
  }

  settle({ policy }: Check, now: number): number[] {
    const latest = now + policy.windowMs
    const late = this.#leases.filter(({ endsAt }) => endsAt > latest)
    for (const lease of late) lease.endsAt = latest
    return late.length > 0 ? [latest] : []
  }

  isOver(_check: Check, now: number): boolean {
    return this.#running(now).length === 0
  }

  take({ policy, cost, limit }: Check, now: number): { at: number; ends: number[] } {
    this.#taken += 1
    const endsAt = now + policy.windowMs
    const units = Math.min(cost, limit)
    const running = this.#running(now)
    const isCountable = sum(running) + BigInt(units) <= BigInt(Number.MAX_SAFE_INTEGER)
    this.#leases = isCountable ? [...running, { number: this.#taken, units, endsAt }] : running
    return { at: this.#taken, ends: [endsAt] }
  }

  giveBack(_check: Check, at: number, now: number): GivenBack {
    const given = this.#running(now).some(({ number }) => number === at)
    this.#leases = this.#leases.filter(({ number }) => number !== at)
    return { given, isGone: this.#running(now).length === 0 }
  }

  used(_check: Check, now: number): bigint {
    return sum(this.#running(now))
  }

  renew({ policy }: Check, at: number, now: number): { held: boolean; ends: number[] } {
    const lease = this.#running(now).find(({ number }) => number === at)
    if (!lease) return { held: false, ends: [] }
    lease.endsAt = now + policy.windowMs
    return { held: true, ends: [lease.endsAt] }
  }

  expected({ policy, limit, cost }: Check, now: number): Expected {
    const used = Number(sum(this.#running(now)))
    const never = limit === 0 || cost > limit
    const fits = cost === 0 || used + cost <= limit
    return {
      allowed: !never && fits,
      limit,
      remaining: Math.max(0, limit - used),
      resetMs: -1,
      retryAfterMs: never ? Number.POSITIVE_INFINITY : fits ? 0 : policy.retryMs,
      delayMs: 0,
    }
  }

  #running(now: number): Lease[] {
    return this.#leases.filter(({ endsAt }) => endsAt > now)
  }
}

function sum(leases: readonly Lease[]): bigint {
  return leases.reduce((units, lease) => units + BigInt(lease.units), 0n)
}
