import type { ParsedPolicy } from './parsed-rate-limit.ts'
import { dictionaryValues, isInteger, isOptionalInteger } from './structured-text.ts'

/** `RateLimit` of draft-7, a Dictionary that requires `limit` and `reset`. */
export function parseDraft7(text: string | undefined): ParsedPolicy | undefined {
  const values = text === undefined ? undefined : dictionaryValues(text)
  const limit = values?.get('limit')
  const remaining = values?.get('remaining')
  const reset = values?.get('reset')
  if (!isInteger(limit, 0) || !isOptionalInteger(remaining, 0) || !isInteger(reset, 0))
    return undefined
  return { name: undefined, limit, remaining, resetMs: reset * 1000 }
}
