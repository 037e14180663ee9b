/**
 * Whole milliseconds from `nowMs` until an instant (both in milliseconds since 1970), rounded up, 0
 * once it has passed, and at most 2^53 − 1. `undefined` where either is not a finite number, since
 * no delay follows from such a clock.
 */
export function msUntil(instantMs: number, nowMs: number): number | undefined {
  const delayMs = Math.ceil(instantMs - nowMs)
  if (!Number.isFinite(delayMs)) return undefined
  return Math.min(Math.max(0, delayMs), Number.MAX_SAFE_INTEGER)
}
