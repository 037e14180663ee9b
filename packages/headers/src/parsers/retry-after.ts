import { parseHttpDate } from './http-date.ts'
import { msUntil } from './ms-until.ts'

const secondsSyntax = /^\d+(\s*,\s*\d+)*$/

/**
 * Retry-After as milliseconds from `nowMs`, never negative: seconds, or an HTTP-date. Two lines of seconds, as two
 * limiters may send them, mean the longer one. Anything else is ignored: fractions, signs and units are no
 * delay-seconds (RFC 9110 §10.2.3).
 */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  const value = text?.trim() ?? ''
  if (secondsSyntax.test(value)) {
    const delaysMs = value.split(',').map((seconds) => Number(seconds) * 1000)
    return Math.min(
      delaysMs.reduce((longest, delay) => Math.max(longest, delay)),
      Number.MAX_SAFE_INTEGER,
    )
  }
  const dateMs = parseHttpDate(value, nowMs)
  return dateMs === undefined ? undefined : msUntil(dateMs, nowMs)
}
