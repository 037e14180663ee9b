import { parseHttpDate } from './http-date.ts'
import { msUntil } from './ms-until.ts'

const secondsSyntax = /^\d+(\s*,\s*\d+)*$/

/**
 * Retry-After as milliseconds from `nowMs`, never negative: seconds, or an HTTP-date. Two lines of seconds, as two
 * limiters may send them, mean the longer one. Seconds since 1970 are an instant, sent by mistake. Anything else is ignored: fractions, signs and units are no
 * delay-seconds (RFC 9110 §10.2.3).
 */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  const value = text?.trim() ?? ''
  if (secondsSyntax.test(value)) {
    const delaysMs = value.split(',').map((seconds) => delayOf(Number(seconds), nowMs))
    return Math.min(
      delaysMs.reduce((longest, delay) => Math.max(longest, delay)),
      Number.MAX_SAFE_INTEGER,
    )
  }
  const dateMs = parseHttpDate(value, nowMs)
  return dateMs === undefined ? undefined : msUntil(dateMs, nowMs)
}

/** A delay from here on would be 31 years. */
const firstEpochSeconds = 1_000_000_000

function delayOf(seconds: number, nowMs: number): number {
  return seconds < firstEpochSeconds
    ? seconds * 1000
    : (msUntil(seconds * 1000, nowMs) ?? seconds * 1000)
}
