import type { CountingCheck } from './algorithm.ts'

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

/** Returns the units left: an integer from 0 to the limit, even if a bucket holds more. */
export function remainingUnits(limit: number, capacity: number, used: number): number {
  return Math.min(limit, Math.max(0, capacity - used))
}
