import { type FieldLookup, fieldLookup, type HeaderSource } from './parsers/header-source.ts'
import { joinPolicies } from './parsers/join-policies.ts'
import type { ParsedPolicy, ParsedRateLimit } from './parsers/parsed-rate-limit.ts'
import { parseLegacy, parseVendors } from './parsers/quotas.ts'
import { parseDraft7, parsePartitions, parseRateLimit } from './parsers/rate-limit.ts'
import { parseRateLimitPolicy } from './parsers/rate-limit-policy.ts'
import { parseWait } from './parsers/retry-after.ts'

/** Options of `parseHeaders`. */
export interface ParseOptions {
  /** Milliseconds since 1970, to convert epochs and dates. @default Date.now() */
  readonly nowMs?: number | undefined
}

/**
 * Parses the rate limits of a response, in any dialect. Of several dialects the richest wins:
 * draft-8 to draft-11, then draft-7, then draft-3 to draft-6, then `X-RateLimit-*`, then
 * `X-Rate-Limit-*`. The quotas of model APIs (OpenAI, Azure, Anthropic) come last. Malformed fields
 * are ignored, as the drafts demand; nothing throws. For an ambiguous wait, the longer one is used.
 *
 * @param source a `Headers`, or a record of header values such as Node's `message.headers`
 * @example
 * const { policies, retryAfterMs } = parseHeaders(response.headers)
 */
export function parseHeaders(
  source: HeaderSource,
  { nowMs = Date.now() }: ParseOptions = {},
): ParsedRateLimit {
  const field = fieldLookup(source)
  return {
    policies: [...parsePolicies(field, nowMs), ...parseVendors(field, nowMs)],
    retryAfterMs: parseWait(field, nowMs),
  }
}

function parsePolicies(field: FieldLookup, nowMs: number): ParsedPolicy[] {
  const listed = parseRateLimitPolicy(field('RateLimit-Policy'))
  const named = listed.filter(({ name }) => name !== undefined)
  const states = parseRateLimit(field('RateLimit'))
  if (states.length > 0) {
    const partitions = parsePartitions(field('RateLimit-Partition'))
    const policies = joinPolicies(named, states, 'name')
    return policies.map((policy) => ({ ...policy, partition: partitions.get(policy.name) }))
  }

  const olderStates = [...parseDraft7(field('RateLimit')), ...parseLegacy(field, nowMs)]
  // Servers may send their policies in the new syntax, and the remaining units only in the old one.
  // Until draft-3, the windows followed the limit in RateLimit-Limit.
  const lists = [named, listed, parseRateLimitPolicy(field('RateLimit-Limit'))]
  const policies = lists.find(({ length }) => length > 0) ?? []
  return joinPolicies(policies, olderStates.slice(0, 1), 'limit')
}
