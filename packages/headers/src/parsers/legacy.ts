import type { FieldLookup } from './header-source.ts'
import { msUntil } from './ms-until.ts'
import type { ParsedPolicy } from './parsed-rate-limit.ts'
import { secondsOrEpochMs } from './seconds-or-epoch.ts'
import { latest, least } from './strictest.ts'

/** Resets from here on are epochs in milliseconds: as seconds, 10^11 would be the year 5138. */
const firstEpochMs = 100_000_000_000

/** GitHub's spelling, then that of X. */
const prefixes = ['X-RateLimit-', 'X-Rate-Limit-']

/**
 * `X-RateLimit-Limit`, `-Remaining` and `-Reset`, each ignored alone when it is malformed. The
 * reset is read as a delta (Reddit, fastify), an epoch with or without a fraction (GitHub, Discord)
 * or an ISO 8601 instant (Atlassian). GitHub names what is limited in `-Resource`. Of two lines of
 * a field, which come joined by a comma, the stricter one counts.
 */
export function parseLegacy(field: FieldLookup, nowMs: number): ParsedPolicy | undefined {
  for (const prefix of prefixes) {
    const limit = least(linesOf(field(`${prefix}Limit`)).map(decimal))
    const remaining = least(linesOf(field(`${prefix}Remaining`)).map(decimal))
    const resets = linesOf(field(`${prefix}Reset`)).map((line) => parseReset(line, nowMs))
    const resetMs = latest(resets)
    if (limit === undefined && remaining === undefined && resetMs === undefined) continue
    const name = field(`${prefix}Resource`)?.trim() || undefined
    return { name, limit: whole(limit), remaining: whole(remaining), resetMs }
  }
  return undefined
}

function linesOf(text: string | undefined): string[] {
  return text === undefined ? [] : text.split(',').map((line) => line.trim())
}

function parseReset(text: string, nowMs: number): number | undefined {
  const value = decimal(text)
  if (value === undefined) return untilInstant(text, nowMs)
  if (value >= firstEpochMs) return msUntil(value, nowMs)
  return secondsOrEpochMs(value, nowMs)
}

const iso8601 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/

function untilInstant(text: string, nowMs: number): number | undefined {
  return iso8601.test(text) ? msUntil(Date.parse(text), nowMs) : undefined
}

const decimalSyntax = /^\d{1,15}(\.\d{1,9})?$/

function decimal(text: string): number | undefined {
  return decimalSyntax.test(text) ? Number(text) : undefined
}

function whole(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.floor(value)
}
