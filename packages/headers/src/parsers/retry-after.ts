import { parseHttpDate } from './http-date.ts'
import { msUntil } from './ms-until.ts'
import { secondsOrEpochMs } from './seconds-or-epoch.ts'

const secondsSyntax = /^\d+(\.\d+)?$/

/**
 * Two lines of a field come joined by a comma; the one within a date is followed by a day and a
 * month.
 */
const betweenLines = /,(?!\s*\d\d[ -][A-Z])/

/**
 * Retry-After as milliseconds from `nowMs`, never negative: seconds, or an HTTP-date. Two lines, as
 * two limiters may send them, mean the longer wait. Seconds since 1970 are an instant, sent by
 * mistake. A fraction is no delay-seconds (RFC 9110 §10.2.3), but a client that ignores it comes
 * too early. Anything else is ignored: signs and units.
 */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  let longestMs: number | undefined
  for (const line of (text ?? '').split(betweenLines)) {
    const delayMs = delayOf(line.trim(), nowMs)
    if (delayMs !== undefined) longestMs = Math.max(longestMs ?? 0, delayMs)
  }
  return longestMs
}

function delayOf(line: string, nowMs: number): number | undefined {
  if (!secondsSyntax.test(line)) return msUntilDate(line, nowMs)
  const seconds = Number(line)
  return (
    secondsOrEpochMs(seconds, nowMs) ?? Math.min(Math.ceil(seconds * 1000), Number.MAX_SAFE_INTEGER)
  )
}

function msUntilDate(line: string, nowMs: number): number | undefined {
  const dateMs = parseHttpDate(line, nowMs)
  return dateMs === undefined ? undefined : msUntil(dateMs, nowMs)
}
