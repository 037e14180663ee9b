import type { ParsedPolicy } from './parsed-rate-limit.ts'
import { isInteger, listItems } from './structured-text.ts'

/**
 * Parses `RateLimit-Policy` of any draft: String items are from draft-8 to draft-11 and have a
 * name; Integer items are from draft-4 to draft-7 and have none. Malformed items are ignored, and
 * so is a field that is not a List.
 */
export function parseRateLimitPolicy(text: string | undefined): ParsedPolicy[] {
  return listItems(text).flatMap(({ value, parameters }): ParsedPolicy[] => {
    const { q: limit, qu: unit, w: window, pk } = parameters
    if (window !== undefined && !isInteger(window, 1)) return []
    const windowMs = window && window * 1000
    // The older drafts require the window.
    if (isInteger(value) && window) return [{ name: undefined, limit: value, windowMs }]
    if (typeof value !== 'string' || !isInteger(limit)) return []
    if (unit !== undefined && typeof unit !== 'string') return []
    if (pk !== undefined && !(pk instanceof ArrayBuffer)) return []
    return [{ name: value, limit, windowMs, unit, pk: pk && new Uint8Array(pk) }]
  })
}
