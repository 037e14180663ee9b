import type { Check } from '../check.ts'
import type { Algorithm } from './algorithm.ts'

/**
 * The window in which no more than what remains may be used, for clients that pace themselves:
 * `max(time to the next unit, ⌊remaining⌋ · windowMs / limit)`, rounded up; the whole window when nothing counts. It satisfies
 * both definitions of `t` in the drafts (time to more quota in -10, effective window in -11).
 */
export function effectiveWindowMs<State>(
  { used, msUntil }: Pick<Algorithm<State>, 'used' | 'msUntil'>,
  state: State,
  { check, now }: { check: Check; now: number },
): number {
  const { limit, policy } = check
  const units = used(state, check, now)
  if (limit === 0 || units === 0) return policy.windowMs
  // The next unit is free when one fewer counts than now, and fewer than the limit.
  const msToNextUnit = msUntil(state, check, { now, target: Math.min(units, limit) - 1 })
  const remaining = Math.max(0, limit - units)
  return Math.max(msToNextUnit, Math.ceil((remaining * policy.windowMs) / limit))
}
