import type { FieldLookup } from './header-source.ts'
import type { ParsedPolicy } from './parsed-rate-limit.ts'
import { secondsOrEpochMs } from './seconds-or-epoch.ts'
import { latest, least } from './strictest.ts'
import { isInteger, listItems } from './structured-text.ts'

/**
 * `RateLimit-Limit`, `-Remaining` and `-Reset` of draft-3 to draft-6, each ignored alone when it is
 * malformed. Draft-3 lists the windows behind the limit: `100, 100;w=60`. Of two lines of the
 * others the stricter one counts. A reset may be an epoch (GitLab).
 */
export function parseDraft6(field: FieldLookup, nowMs: number): ParsedPolicy | undefined {
  const [limit] = integers(field('RateLimit-Limit'))
  const remaining = least(integers(field('RateLimit-Remaining')))
  const reset = latest(integers(field('RateLimit-Reset')))
  if (limit === undefined && remaining === undefined && reset === undefined) return undefined
  return {
    name: undefined,
    limit,
    remaining,
    resetMs: reset === undefined ? undefined : secondsOrEpochMs(reset, nowMs),
  }
}

function integers(text: string | undefined): (number | undefined)[] {
  const items = text === undefined ? [] : listItems(text)
  return items.map(({ value }) => (isInteger(value, 0) ? value : undefined))
}
