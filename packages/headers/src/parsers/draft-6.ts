import type { ParsedPolicy } from '../parsed-rate-limit.ts'
import type { FieldLookup } from './header-source.ts'
import { isInteger, listItems } from './structured-text.ts'

/**
 * `RateLimit-Limit`, `-Remaining` and `-Reset` of draft-3 to draft-6, each ignored alone when it is malformed. Draft-3
 * lists the windows behind the limit: `100, 100;w=60`.
 */
export function parseDraft6(field: FieldLookup): ParsedPolicy | undefined {
  const limit = firstInteger(field('RateLimit-Limit'))
  const remaining = firstInteger(field('RateLimit-Remaining'))
  const reset = firstInteger(field('RateLimit-Reset'))
  if (limit === undefined && remaining === undefined && reset === undefined) return undefined
  return {
    name: undefined,
    limit,
    remaining,
    resetMs: reset === undefined ? undefined : reset * 1000,
  }
}

function firstInteger(text: string | undefined): number | undefined {
  const value = text === undefined ? undefined : listItems(text)[0]?.value
  return isInteger(value, 0) ? value : undefined
}
