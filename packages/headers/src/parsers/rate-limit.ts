import type { ParsedPolicy } from './parsed-rate-limit.ts'
import {
  bytesOf,
  type FieldItem,
  isInteger,
  isOptionalBytes,
  isOptionalInteger,
  listItems,
} from './structured-text.ts'

/**
 * `RateLimit` of draft-8 to draft-11. A malformed item is ignored, and so is a field that is no
 * List.
 */
export function parseRateLimit(text: string | undefined): ParsedPolicy[] {
  return text === undefined ? [] : listItems(text).flatMap(stateOf)
}

function stateOf({ value: name, parameters }: FieldItem): ParsedPolicy[] {
  const remaining = parameters.get('r')
  const reset = parameters.get('t')
  const pk = parameters.get('pk')
  if (typeof name !== 'string' || !isInteger(remaining, 0)) return []
  if (!isOptionalInteger(reset, 0) || !isOptionalBytes(pk)) return []
  return [
    {
      name,
      remaining,
      resetMs: reset === undefined ? undefined : reset * 1000,
      pk: bytesOf(pk),
    },
  ]
}
