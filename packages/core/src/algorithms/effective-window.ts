import type { Check } from '../check.ts'
import type { Algorithm, Counted } from './algorithm.ts'

/** What is known of a key in order to tell its effective window. */
interface Usage {
  /** Units that count now. */
  readonly used: number
  /** The most units that may count at once. */
  readonly capacity: number
  /** Until one unit fewer counts than now, and fewer than the capacity. */
  readonly msToNextUnit: number
}

/**
 * The window in which no more than what remains may be used, for clients that pace themselves:
 * `max(time to the next unit, ⌊remaining⌋ · windowMs / limit)`, rounded up; the whole window when nothing counts. It satisfies
 * both definitions of `t` in the drafts (time to more quota in -10, effective window in -11).
 */
export function effectiveWindowMs(
  { policy, limit }: Check,
  { used, capacity, msToNextUnit }: Usage,
): number {
  if (limit === 0 || used === 0) return policy.windowMs
  const remaining = remainingUnits(limit, capacity, used)
  return Math.max(msToNextUnit, Math.ceil((remaining * policy.windowMs) / limit))
}

/** Units left: whole, never negative, never above the limit, also where a bucket holds more than that. */
export function remainingUnits(limit: number, capacity: number, used: number): number {
  return Math.min(limit, Math.max(0, capacity - used))
}

/** The effective window of a state, by the questions that every algorithm answers. */
export function resetMs<State extends Counted>(
  { used, capacity, msUntil }: Pick<Algorithm<State>, 'used' | 'capacity' | 'msUntil'>,
  state: State,
  { check, now }: { check: Check; now: number },
): number {
  const units = used(state, check, now)
  if (check.limit === 0 || units === 0) return check.policy.windowMs
  const most = capacity(check)
  const msToNextUnit = msUntil(state, check, { now, target: Math.min(units, most) - 1 })
  return effectiveWindowMs(check, { used: units, capacity: most, msToNextUnit })
}
