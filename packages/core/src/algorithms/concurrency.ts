import type { Algorithm, Counted } from './algorithm.ts'

interface Lease {
  readonly units: number
  readonly endsAt: number
}

/** Leases by number, the first to expire first. */
export interface Leases extends Counted {
  running: Map<number, Lease>
  /** Units of all of `running`. */
  units: number
  /** No lease runs longer. */
  endsAt: number
  nextNumber: number
}

/** Requests in flight: each holds a lease, which is given back when it ends, and expires when nobody renews it. */
export const concurrency: Algorithm<Leases> = {
  create: () => ({ running: new Map(), units: 0, endsAt: 0, nextNumber: 1, limit: 0 }),

  capacity: ({ limit }) => limit,

  settle(state, { policy }, now) {
    const latest = now + policy.windowMs
    if (state.endsAt <= latest) return state
    const running = [...state.running].map(([number, lease]): [number, Lease] => [
      number,
      lease.endsAt > latest ? { ...lease, endsAt: latest } : lease,
    ])
    return { ...state, endsAt: latest, running: new Map(running) }
  },

  used(state, _check, now) {
    let { units } = state
    for (const lease of state.running.values()) {
      if (lease.endsAt > now) break
      units -= lease.units
    }
    return units
  },

  msUntil(state, check, { now, target }) {
    return concurrency.used(state, check, now) <= target ? 0 : check.policy.retryMs
  },

  resetMs: () => undefined,

  take(state, { policy, cost, limit }, now) {
    forgetExpired(state, now)
    const number = state.nextNumber
    state.nextNumber += 1
    state.limit = limit
    // More than the limit count no more than it. What could not be added up any more gets no lease.
    const units = Math.min(cost, limit)
    if (state.units + units > Number.MAX_SAFE_INTEGER) return number
    state.units += units
    state.endsAt = now + policy.windowMs
    state.running.set(number, { units, endsAt: state.endsAt })
    return number
  },

  giveBack(state, _check, { now, at }) {
    const lease = state.running.get(at)
    state.units -= lease?.units ?? 0
    state.running.delete(at)
    return lease !== undefined && lease.endsAt > now
  },

  renew(state, { policy }, { now, at }) {
    const lease = state.running.get(at)
    if (!lease || lease.endsAt <= now) return false
    // Put at the end: it now expires last.
    state.running.delete(at)
    state.endsAt = now + policy.windowMs
    state.running.set(at, { ...lease, endsAt: state.endsAt })
    return true
  },

  endsAt: ({ running, endsAt }) => (running.size === 0 ? 0 : endsAt),
}

function forgetExpired(state: Leases, now: number): void {
  for (const [number, lease] of state.running) {
    if (lease.endsAt > now) return
    state.units -= lease.units
    state.running.delete(number)
  }
}
