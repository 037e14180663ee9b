/**
 * Returns whole milliseconds from `nowMs` until an instant (both in milliseconds since 1970),
 * rounded up, 0 once it has passed, and at most 2^53 − 1. `undefined` if either is not a finite
 * number.
 */
export function msUntil(instantMs: number, nowMs: number): number | undefined {
  const delayMs = Math.ceil(instantMs - nowMs)
  if (!Number.isFinite(delayMs)) return undefined
  return Math.min(Math.max(0, delayMs), Number.MAX_SAFE_INTEGER)
}

/**
 * Seconds from here on are an instant, fewer are a delay: 10^9 s is September 2001 as an instant
 * and 31 years as a delay. Some servers send one instead of the other (GitLab in RateLimit-Reset),
 * and X-RateLimit-Reset does not say which of the two it is.
 */
const firstEpochSeconds = 1_000_000_000

/**
 * Returns whole milliseconds from `nowMs`, for seconds from now or since 1970; `undefined` for an
 * instant if the clock is broken.
 */
export function secondsOrEpochMs(seconds: number, nowMs: number): number | undefined {
  return seconds < firstEpochSeconds ? Math.ceil(seconds * 1000) : msUntil(seconds * 1000, nowMs)
}
