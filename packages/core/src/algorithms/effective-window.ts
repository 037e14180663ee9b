import type { Check } from '../store.ts'

/**
 * The window in which no more than what remains may be used, for clients that pace themselves:
 * `max(time to the next unit, ⌊remaining⌋ · windowMs / limit)`, rounded up. It satisfies both definitions of `t` in the
 * drafts (time to more quota in -10, effective window in -11).
 * @param used units that count now, at least one; the limit is not 0
 * @param msToNextUnit time until one more unit is free
 */
export function effectiveWindowMs(check: Check, used: number, msToNextUnit: number): number {
  const { limit, policy } = check
  const remaining = Math.max(0, limit - used)
  return Math.max(msToNextUnit, Math.ceil((remaining * policy.windowMs) / limit))
}

/** The units that must still count when the next one is free: one fewer than now, and fewer than the limit. */
export function nextUnitTarget(check: Check, used: number): number {
  return Math.min(used, check.limit) - 1
}
