import type { FieldLookup } from './header-source.ts'
import { quotaOf } from './legacy.ts'
import type { ParsedPolicy } from './parsed-rate-limit.ts'

/**
 * The quotas of model APIs, by name. `*` is `Limit`, `Remaining` or `Reset`. OpenAI, Azure and Groq
 * send the first two, Anthropic the others.
 */
const quotas = [
  ['requests', 'X-RateLimit-*-Requests'],
  ['tokens', 'X-RateLimit-*-Tokens'],
  ['requests', 'Anthropic-RateLimit-Requests-*'],
  ['tokens', 'Anthropic-RateLimit-Tokens-*'],
  ['input-tokens', 'Anthropic-RateLimit-Input-Tokens-*'],
  ['output-tokens', 'Anthropic-RateLimit-Output-Tokens-*'],
] as const

/** Azure sends −1 for an unknown number, and 0 for an unknown reset. */
export function parseVendors(field: FieldLookup, nowMs: number): ParsedPolicy[] {
  return quotas.flatMap(([name, fields]) => {
    const { limit, remaining, resetMs } = quotaOf(field, fields, nowMs)
    const isTold = limit !== undefined || remaining !== undefined || Boolean(resetMs)
    return isTold ? [{ name, limit, remaining, resetMs: resetMs || undefined }] : []
  })
}
