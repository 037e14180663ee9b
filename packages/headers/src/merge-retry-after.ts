import type { ParseOptions } from './parse-headers.ts'
import { parseRetryAfter } from './parsers/retry-after.ts'
import { formatRetryAfter } from './values/policy-state.ts'

/**
 * Merges our Retry-After with the one already on a response: the later one counts, since a client
 * that waits for it satisfies both. An existing HTTP-date is converted to seconds first, since
 * clients read a date up to a second early. Any other text is dropped, since no client could have
 * used it. The result is at most 1,728,000 (20 days).
 *
 * @param ours seconds from `formatRetryAfter`
 */
export function mergeRetryAfter(
  existing: string | undefined,
  ours: string,
  { nowMs = Date.now() }: ParseOptions = {},
): string {
  const existingMs = existing === undefined ? undefined : parseRetryAfter(existing, nowMs)
  if (existingMs === undefined) return ours
  const oursMs = parseRetryAfter(ours, nowMs) ?? 0
  return formatRetryAfter(Math.max(existingMs, oursMs)) ?? ours
}
