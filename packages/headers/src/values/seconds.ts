/** The largest integer of a structured field: 15 digits (RFC 9651 §3.3.1). */
export const maxInteger = 999_999_999_999_999

/**
 * Milliseconds as whole seconds, rounded up and at least 1: a 0 is legal in most fields, but
 * clients that pace themselves divide by it. `undefined` when there is none, or more than a field
 * can carry.
 */
export function wholeSeconds(durationMs: number | undefined): number | undefined {
  if (durationMs === undefined) return undefined
  const seconds = Math.max(1, Math.ceil(durationMs / 1000))
  return seconds <= maxInteger ? seconds : undefined
}
