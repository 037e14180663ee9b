import type { FieldLookup } from './header-source.ts'
import { msUntil, secondsOrEpochMs, strictest } from './ms-until.ts'
import type { ParsedPolicy } from './parsed-rate-limit.ts'

/** draft-3 to draft-6, then GitHub's spelling, then X's. */
const prefixes = ['RateLimit-', 'X-RateLimit-', 'X-Rate-Limit-']

/**
 * `RateLimit-Limit`, `-Remaining` and `-Reset`, with or without `X-`. GitHub names the quota in
 * `-Resource`.
 */
export function parseLegacy(field: FieldLookup, nowMs: number): ParsedPolicy[] {
  const quotas = prefixes.map((prefix) => ({
    name: field(`${prefix}Resource`)?.trim() || undefined,
    ...quotaOf(field, `${prefix}*`, nowMs),
  }))
  return quotas.filter(isTold)
}

/**
 * The quotas of model APIs, by name. `*` is `Limit`, `Remaining` or `Reset`. OpenAI, Azure and Groq
 * send the first two, Anthropic the others.
 */
const vendorQuotas = [
  ['requests', 'X-RateLimit-*-Requests'],
  ['tokens', 'X-RateLimit-*-Tokens'],
  ['requests', 'Anthropic-RateLimit-Requests-*'],
  ['tokens', 'Anthropic-RateLimit-Tokens-*'],
  ['input-tokens', 'Anthropic-RateLimit-Input-Tokens-*'],
  ['output-tokens', 'Anthropic-RateLimit-Output-Tokens-*'],
] as const

/** Azure sends −1 for an unknown number, and 0 for an unknown reset. */
export function parseVendors(field: FieldLookup, nowMs: number): ParsedPolicy[] {
  const quotas = vendorQuotas.map(([name, fields]) => {
    const quota = quotaOf(field, fields, nowMs)
    return { name, ...quota, resetMs: quota.resetMs || undefined }
  })
  return quotas.filter(isTold)
}

function isTold({ limit, remaining, resetMs }: ParsedPolicy): boolean {
  return (limit ?? remaining ?? resetMs) !== undefined
}

/**
 * Parses the numbers of one quota; a malformed number is ignored on its own. The windows that
 * draft-3 lists after the limit are ignored.
 *
 * @param fields the names of the fields, with `*` for `Limit`, `Remaining` and `Reset`
 */
function quotaOf(field: FieldLookup, fields: string, nowMs: number) {
  const text = (part: string) => field(fields.replace('*', part))
  return {
    limit: strictest(text('Limit'), Math.min, wholeUnits),
    remaining: strictest(text('Remaining'), Math.min, wholeUnits),
    resetMs: strictest(text('Reset'), Math.max, (line) => parseReset(line, nowMs)),
  }
}

const decimal = /^\d{1,15}(\.\d{1,9})?$/

function wholeUnits(text: string): number | undefined {
  return decimal.test(text) ? Math.floor(Number(text)) : undefined
}

/** Resets from here on are epochs in milliseconds: as seconds, 10^11 would be the year 5138. */
const firstEpochMs = 100_000_000_000

const iso8601 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/

/**
 * Parses a delta (Reddit, fastify), a duration (OpenAI), an epoch with or without a fraction
 * (GitHub, Discord) or an ISO 8601 instant (Atlassian, Anthropic).
 */
function parseReset(text: string, nowMs: number): number | undefined {
  if (iso8601.test(text)) return msUntil(Date.parse(text), nowMs)
  if (!decimal.test(text)) return durationMs(text)
  const value = Number(text)
  return value < firstEpochMs ? secondsOrEpochMs(value, nowMs) : msUntil(value, nowMs)
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
