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

/**
 * Seconds from here on are an instant, fewer are a delay: 10^9 s is September 2001 as an instant
 * and 31 years as a delay. Some servers send one where the other is meant (GitLab in
 * RateLimit-Reset), and no emitter of X-RateLimit-Reset says which of the two it sends.
 */
const firstEpochSeconds = 1_000_000_000

/**
 * Whole milliseconds from `nowMs`, of seconds to go or since 1970; `undefined` where an instant
 * says nothing since the clock is broken.
 */
export function secondsOrEpochMs(seconds: number, nowMs: number): number | undefined {
  return seconds < firstEpochSeconds ? Math.ceil(seconds * 1000) : msUntil(seconds * 1000, nowMs)
}
