/**
 * Returns whole milliseconds from `nowMs` until an instant (both in milliseconds since 1970),
 * rounded up, 0 once it has passed, and at most 2^53 − 1. `undefined` without an instant, or if the
 * clock is broken.
 */
export function msUntil(instantMs: number | undefined, nowMs: number): number | undefined {
  if (instantMs === undefined || Number.isNaN(instantMs) || !Number.isFinite(nowMs))
    return undefined
  return Math.min(Math.max(0, Math.ceil(instantMs - nowMs)), Number.MAX_SAFE_INTEGER)
}

/**
 * Seconds from here on are an instant, fewer are a delay: 10^9 s is September 2001 as an instant
 * and 31 years as a delay. Some servers send one instead of the other (GitLab in RateLimit-Reset),
 * and X-RateLimit-Reset does not say which of the two it is.
 */
const firstEpochSeconds = 1_000_000_000

/** Returns whole milliseconds from `nowMs`, for seconds from now or since 1970. */
export function secondsOrEpochMs(seconds: number, nowMs: number): number | undefined {
  return seconds < firstEpochSeconds ? Math.ceil(seconds * 1000) : msUntil(seconds * 1000, nowMs)
}

/**
 * Two lines of a field are joined by a comma; the comma within a date is followed by a day and a
 * month.
 */
const betweenLines = /,(?!\s*\d\d[ -][A-Z])/

/** Returns the stricter number of two lines of a field. A line that cannot be read is ignored. */
export function strictest(
  text: string | undefined,
  stricter: (...numbers: readonly number[]) => number,
  read: (line: string) => number | undefined,
): number | undefined {
  const lines = (text ?? '').split(betweenLines)
  const numbers = lines.flatMap((line) => read(line.trim()) ?? [])
  return numbers.length > 0 ? stricter(...numbers) : undefined
}
