import type { Dialect, FieldOptions, FormatOptions, HeaderLine } from './formats/dialect-format.ts'
import { formats } from './formats/formats.ts'
import { formatRetryAfter, longestWaitMs, type PolicyState } from './values/policy-state.ts'

/**
 * Formats the header lines of a response: one line per field, with the dialects in the given order.
 * If the request is rejected and waiting helps, one Retry-After follows.
 *
 * @example
 * const state = { name: 'default', limit: 100, windowMs: 60_000, remaining: 99, resetMs: 60_000 }
 * formatHeaders([state], {
 *   dialects: ['draft-11', 'legacy'], nowMs: Date.now(), rejected: false,
 * })
 * // RateLimit-Policy: "default";q=100;w=60
 * // RateLimit: "default";r=99;t=60
 * // X-RateLimit-Limit: 100
 * // X-RateLimit-Remaining: 99
 * // X-RateLimit-Reset: 1795195861
 */
export function formatHeaders(
  states: readonly PolicyState[],
  options: FormatOptions,
): HeaderLine[] {
  const lines = formatFields(states, options.dialects, options)
  if (options.rejected) {
    const retryAfter = formatRetryAfter(longestWaitMs(states), options.retryJitterMs)
    if (retryAfter !== undefined) lines.push(['Retry-After', retryAfter])
  }
  return lines
}

/**
 * Formats like `formatHeaders`, without Retry-After. Use it if Retry-After is set separately, since
 * it is merged with an existing one.
 */
export function formatFields(
  states: readonly PolicyState[],
  dialects: readonly Dialect[],
  options: FieldOptions,
): HeaderLine[] {
  const lines: HeaderLine[] = []
  for (const dialect of dialects) formats[dialect].add(lines, states, options)
  return lines
}
