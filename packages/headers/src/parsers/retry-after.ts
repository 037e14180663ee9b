import type { FieldLookup } from './header-source.ts'
import { parseHttpDate } from './http-date.ts'
import { msUntil, secondsOrEpochMs, strictest } from './ms-until.ts'

const secondsSyntax = /^\d+(\.\d+)?$/

/**
 * Parses Retry-After to milliseconds from `nowMs`, never negative: seconds, or an HTTP-date. Two
 * lines, as from two limiters, mean the longer wait. Seconds since 1970 are an instant sent by
 * mistake. Fractions are not valid (RFC 9110 §10.2.3), but a client that ignored them would come
 * too early. Anything else, such as signs and units, is ignored.
 */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  return strictest(text, Math.max, (line) =>
    secondsSyntax.test(line)
      ? secondsOrEpochMs(Number(line), nowMs)
      : msUntil(parseHttpDate(line, nowMs), nowMs),
  )
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
