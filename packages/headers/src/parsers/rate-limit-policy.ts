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
 * Parses `RateLimit-Policy` of any draft: String items are from draft-8 to draft-11 and have a
 * name; Integer items are from draft-4 to draft-7 and have none. Malformed items are ignored, and
 * so is a field that is not a List.
 */
export function parseRateLimitPolicy(text: string | undefined): ParsedPolicy[] {
  return listItems(text).flatMap(policyOf)
}

function policyOf({ value, parameters }: FieldItem): ParsedPolicy[] {
  const window = parameters.get('w')
  if (!isOptionalInteger(window, 1)) return []
  const windowMs = window === undefined ? undefined : window * 1000
  if (typeof value === 'string') return namedPolicy(value, windowMs, parameters)
  // The older drafts require the window.
  return isInteger(value, 0) && windowMs !== undefined
    ? [{ name: undefined, limit: value, windowMs }]
    : []
}

function namedPolicy(
  name: string,
  windowMs: number | undefined,
  parameters: FieldItem['parameters'],
): ParsedPolicy[] {
  const limit = parameters.get('q')
  const unit = parameters.get('qu')
  const pk = parameters.get('pk')
  if (!isInteger(limit, 0) || !isOptionalString(unit) || !isOptionalBytes(pk)) return []
  return [{ name, limit, windowMs, unit, pk: bytesOf(pk) }]
}

function isOptionalString(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string'
}
