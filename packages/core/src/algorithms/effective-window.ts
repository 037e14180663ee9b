import type { CountingCheck } from './algorithm.ts'

/** The numbers from which the effective window of a key follows. */
interface Usage {
  /** Units that count now. */
  readonly used: number
  /** The most units that may count at once. */
  readonly capacity: number
  /** The ms until one unit fewer counts than now, and fewer than the capacity. */
  readonly msToNextUnit: number
}

/**
 * The window in which at most the remaining units may be used, for clients that pace themselves:
 * `max(time to the next unit, ⌊remaining⌋ · windowMs / limit)`, rounded up. If nothing counts, it
 * is the whole window. It satisfies both definitions of `t` in the drafts (time to more quota in
 * -10, effective window in -11).
 */
export function effectiveWindowMs(
  { policy, limit }: CountingCheck<object>,
  { used, capacity, msToNextUnit }: Usage,
): number {
  if (limit === 0 || used === 0) return policy.windowMs
  const remaining = remainingUnits(limit, capacity, used)
  return Math.max(msToNextUnit, Math.ceil((remaining * policy.windowMs) / limit))
}

/**
 * Returns the units left: whole, never negative, and never above the limit, even where a bucket
 * holds more.
 */
export function remainingUnits(limit: number, capacity: number, used: number): number {
  return Math.min(limit, Math.max(0, capacity - used))
}
