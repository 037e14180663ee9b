import type { Algorithm, CountingCheck, KeyState } from './algorithm.ts'

/**
 * The window in which clients that pace themselves may use the remaining units: `max(time to the
 * next unit, ⌊remaining⌋ · windowMs / limit)`, rounded up. It is the whole window if nothing
 * counts. It satisfies both definitions of `t` in the drafts (time to more quota in -10, effective
 * window in -11).
 * @param msToNextUnit ms until a unit comes back and the count is below the capacity
 */
export function effectiveWindowMs(
  { policy, limit }: CountingCheck<object>,
  remaining: number,
  msToNextUnit: number,
): number {
  return Math.max(msToNextUnit, Math.ceil((remaining * policy.windowMs) / limit))
}

/** Creates `resetMs` for an algorithm whose units come back one at a time. */
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

/** Returns the units left: an integer from 0 to the limit, even if a bucket holds more. */
export function remainingUnits(limit: number, capacity: number, used: number): number {
  return Math.min(limit, Math.max(0, capacity - used))
}
