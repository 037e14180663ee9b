import type { FieldLookup } from './header-source.ts'
import { msUntil, secondsOrEpochMs } from './ms-until.ts'
import type { ParsedPolicy } from './parsed-rate-limit.ts'

/** Resets from here on are epochs in milliseconds: as seconds, 10^11 would be the year 5138. */
const firstEpochMs = 100_000_000_000

/** draft-3 to draft-6, then GitHub's spelling, then X's. */
const prefixes = ['RateLimit-', 'X-RateLimit-', 'X-Rate-Limit-']

/**
 * `RateLimit-Limit`, `-Remaining` and `-Reset`, with or without `X-`. GitHub names the quota in
 * `-Resource`.
 */
export function parseLegacy(field: FieldLookup, nowMs: number): ParsedPolicy | undefined {
  for (const prefix of prefixes) {
    const quota = quotaOf(field, `${prefix}*`, nowMs)
    if (Object.values(quota).every((value) => value === undefined)) continue
    return { name: field(`${prefix}Resource`)?.trim() || undefined, ...quota }
  }
  return undefined
}

/**
 * Parses the numbers of one quota; a malformed number is ignored on its own. The reset may be a
 * delta (Reddit, fastify), a duration (OpenAI), an epoch with or without a fraction (GitHub,
 * Discord) or an ISO 8601 instant (Atlassian, Anthropic). Of two lines of a field, joined by a
 * comma, the stricter one counts. The windows that draft-3 lists after the limit are ignored.
 *
 * @param fields the names of the fields, with `*` for `Limit`, `Remaining` and `Reset`
 */
export function quotaOf(
  field: FieldLookup,
  fields: string,
  nowMs: number,
): Pick<ParsedPolicy, 'limit' | 'remaining' | 'resetMs'> {
  const read = (part: string, readLine: (line: string) => number | undefined): number[] =>
    (field(fields.replace('*', part)) ?? '')
      .split(',')
      .flatMap((line) => readLine(line.trim()) ?? [])
  const units = (part: string) => least(read(part, decimal))
  const resets = read('Reset', (line) => parseReset(line, nowMs))
  return {
    limit: units('Limit'),
    remaining: units('Remaining'),
    resetMs: resets.length > 0 ? Math.max(...resets) : undefined,
  }
}

function least(numbers: readonly number[]): number | undefined {
  return numbers.length > 0 ? Math.floor(Math.min(...numbers)) : undefined
}

function parseReset(text: string, nowMs: number): number | undefined {
  const value = decimal(text)
  if (value === undefined) return durationMs(text) ?? untilInstant(text, nowMs)
  if (value >= firstEpochMs) return msUntil(value, nowMs)
  return secondsOrEpochMs(value, nowMs)
}

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }
const durationSyntax = /^(\d{1,9}(\.\d{1,9})?(h|ms?|s))+$/

/** Parses Go durations: `6m0s`, `1.5s` or `12ms`. */
function durationMs(text: string): number | undefined {
  if (!durationSyntax.test(text)) return undefined
  let ms = 0
  for (const [, count, unit = ''] of text.matchAll(/([\d.]+)([a-z]+)/g))
    ms += Number(count) * (unitMs[unit] ?? 0)
  return msUntil(ms, 0)
}

const iso8601 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/

function untilInstant(text: string, nowMs: number): number | undefined {
  return iso8601.test(text) ? msUntil(Date.parse(text), nowMs) : undefined
}

const decimalSyntax = /^\d{1,15}(\.\d{1,9})?$/

function decimal(text: string): number | undefined {
  return decimalSyntax.test(text) ? Number(text) : undefined
}
