import { type Duration, durationMs, windowMsOf } from '../options/duration.ts'
import { invalid, orDefault } from '../options/options.ts'
import type { Algorithm, KeyState } from './algorithm.ts'
import { plainWindow } from './window.ts'

export interface ConcurrencyOptions {
  /**
   * `concurrency` only: lifetime of a lease that is not renewed because its process died.
   * @default '30s'
   */
  lease?: Duration | undefined
  /**
   * `concurrency` only: the wait sent to refused clients, since nobody knows when a running
   * request will end.
   * @default '1s'
   */
  retryAfter?: Duration | undefined
}

export interface ConcurrencySettings {
  /** `concurrency`: the wait that a refused client reads. */
  readonly retryMs: number
}

interface Lease {
  readonly units: number
  readonly endsAt: number
}

/** Leases by number, ordered by expiry. */
export interface Leases extends KeyState {
  running: Map<number, Lease>
  /** Total units of `running`. */
  units: number
  /** The time at which the last lease expires. */
  endsAt: number
  nextNumber: number
}

/**
 * Requests in flight: each holds a lease. The lease is released when the request ends, and expires
 * if it is not renewed.
 */
export const concurrency: Algorithm<Leases, ConcurrencySettings, ConcurrencyOptions> = {
  ...plainWindow,
  counts: 'leases',
  keyName: 'leases',
  options: {
    fields: { lease: { form: 'duration' }, retryAfter: { form: 'duration' } },
    windowMs({ lease, window }, at) {
      if (window === undefined) return windowMsOf(orDefault(lease, '30s'), at('lease'))
      const legal = "left out with algorithm 'concurrency', which counts requests in flight"
      throw invalid({ option: at('window') }, window, legal)
    },
    read: ({ retryAfter }, _windowMs, at) => ({
      retryMs: durationMs(orDefault(retryAfter, '1s'), at('retryAfter')),
    }),
  },
  codec: { save, load },

  create: newLeases,

  clamp(state, { policy }, now) {
    const latest = now + policy.windowMs
    if (state.endsAt <= latest) return state
    const running = new Map(state.running)
    for (const [number, { units, endsAt }] of running) {
      if (endsAt > latest) running.set(number, { units, endsAt: latest })
    }
    return { ...state, endsAt: latest, running }
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

  take(state, { policy, cost, limit }, now) {
    for (const [number, lease] of state.running) {
      if (lease.endsAt > now) break
      state.units -= lease.units
      state.running.delete(number)
    }
    const number = state.nextNumber
    state.nextNumber += 1
    state.limit = limit
    // Units beyond the limit are not counted. A lease that would exceed the largest exact sum is
    // not recorded.
    const units = Math.min(cost, limit)
    if (state.units + units > Number.MAX_SAFE_INTEGER) return number
    state.units += units
    state.endsAt = now + policy.windowMs
    state.running.set(number, { units, endsAt: state.endsAt })
    return number
  },

  giveBack(state, { receipt }, now) {
    const lease = state.running.get(receipt.at)
    state.units -= lease?.units ?? 0
    state.running.delete(receipt.at)
    return lease !== undefined && lease.endsAt > now
  },

  renew(state, { policy, receipt: { at } }, now) {
    const lease = state.running.get(at)
    if (!lease || lease.endsAt <= now) return false
    // Moved to the end: it now expires last.
    state.running.delete(at)
    state.endsAt = now + policy.windowMs
    state.running.set(at, { ...lease, endsAt: state.endsAt })
    return true
  },

  endsAt: ({ running, endsAt }) => (running.size === 0 ? 0 : endsAt),

  fromTwin: ({ limit }, { amount, detail }, now) => ({
    state: { running: none, units: amount, endsAt: 0, nextNumber: 0, limit },
    // Same as `lua/parts/lease-number.lua`.
    at: (now % 2 ** 42) * 1000 + detail,
  }),
}

/** Shared by all states read from reports; never written to. */
const none: Leases['running'] = new Map()

function newLeases(): Leases {
  return { running: new Map(), units: 0, endsAt: 0, nextNumber: 1, limit: 0 }
}

function save({ limit, endsAt, nextNumber, running }: Leases): readonly number[] {
  const leases = [...running].flatMap(([number, lease]) => [number, lease.units, lease.endsAt])
  return [limit, endsAt, nextNumber, ...leases]
}

function load(numbers: readonly number[]): Leases | undefined {
  const [limit = 0, endsAt = 0, nextNumber, ...leases] = numbers
  if (nextNumber === undefined || leases.length % 3 > 0) return undefined
  const state = { ...newLeases(), limit, endsAt, nextNumber }
  for (let i = 0; i < leases.length; i += 3) {
    const [number = 0, units = 0, leaseEndsAt = 0] = leases.slice(i, i + 3)
    state.running.set(number, { units, endsAt: leaseEndsAt })
    state.units += units
  }
  return state
}
