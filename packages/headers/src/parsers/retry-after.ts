import type { FieldLookup } from './header-source.ts'
import { parseHttpDate } from './http-date.ts'
import { msUntil, secondsOrEpochMs } from './ms-until.ts'

const secondsSyntax = /^\d+(\.\d+)?$/

/**
 * Two lines of a field are joined by a comma; the comma within a date is followed by a day and a
 * month.
 */
const betweenLines = /,(?!\s*\d\d[ -][A-Z])/

/**
 * Parses Retry-After to milliseconds from `nowMs`, never negative: seconds, or an HTTP-date. Two
 * lines, as from two limiters, mean the longer wait. Seconds since 1970 are an instant sent by
 * mistake. Fractions are not valid (RFC 9110 §10.2.3), but a client that ignored them would come
 * too early. Anything else, such as signs and units, is ignored.
 */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  let longestMs: number | undefined
  for (const line of (text ?? '').split(betweenLines)) {
    const delayMs = delayOf(line.trim(), nowMs)
    if (delayMs !== undefined) longestMs = Math.max(longestMs ?? 0, delayMs)
  }
  return longestMs
}

/**
 * Returns the wait in a response. Azure adds the same wait in milliseconds, and sends 0 or −1 if
 * there is none. If the two differ by a second or more, the longer one counts.
 */
export function parseWait(field: FieldLookup, nowMs: number): number | undefined {
  const waitMs = parseRetryAfter(field('Retry-After'), nowMs)
  const text = field('Retry-After-Ms')?.trim() ?? ''
  const preciseMs = /^\d{1,15}(\.\d+)?$/.test(text) ? Math.ceil(Number(text)) : 0
  return preciseMs > (waitMs ?? 0) - 1000 && preciseMs > 0 ? preciseMs : waitMs
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
