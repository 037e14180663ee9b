import type { Algorithm, CountingCheck, KeyState } from './algorithm.ts'

/**
 * The window in which at most the remaining units may be used, for clients that pace themselves:
 * `max(time to the next unit, ⌊remaining⌋ · windowMs / limit)`, rounded up. If nothing counts, it
 * is the whole window. It satisfies both definitions of `t` in the drafts (time to more quota in
 * -10, effective window in -11).
 * @param msToNextUnit ms until one unit fewer counts than now, and fewer than the capacity
 */
export function effectiveWindowMs(
  { policy, limit }: CountingCheck<object>,
  remaining: number,
  msToNextUnit: number,
): number {
  return Math.max(msToNextUnit, Math.ceil((remaining * policy.windowMs) / limit))
}

/** Makes the `resetMs` of an algorithm whose units come back one after the other. */
export function resetOf<State extends KeyState, Settings extends object>(
  algorithm: () => Pick<Algorithm<State, Settings>, 'capacity' | 'quota' | 'msUntil'>,
): Algorithm<State, Settings>['resetMs'] {
  return (state, check, { now, used }) => {
    if (check.limit === 0 || used === 0) return check.policy.windowMs
    const { capacity, quota = capacity, msUntil } = algorithm()
    const most = quota(check)
    const msToNextUnit = msUntil(state, check, { now, target: Math.min(used, most) - 1 })
    return effectiveWindowMs(check, remainingUnits(check.limit, most, used), msToNextUnit)
  }
}

/**
 * Returns the units left: whole, never negative, and never above the limit, even where a bucket
 * holds more.
 */
export function remainingUnits(limit: number, capacity: number, used: number): number {
  return Math.min(limit, Math.max(0, capacity - used))
}
