import { countText, durationText, shareText, timeText } from './formats.ts'
import type { DeniedClient, PolicyReport, RouteReport } from './simulation-report.ts'

/** A column of a table. A heading that starts with `>` right-aligns its column. */
export type Column<Row> = readonly [head: string, cell: (row: Row) => string]

interface Denials {
  readonly requests: number
  readonly denied: number
  readonly firstDenialMs: number | null
  readonly longestDenialMs: number
}

const denials: readonly Column<Omit<Denials, 'requests' | 'denied'>>[] = [
  ['first refusal', ({ firstDenialMs }) => (firstDenialMs === null ? '' : timeText(firstDenialMs))],
  [
    '>longest',
    ({ firstDenialMs: at, longestDenialMs: ms }) => (at === null ? '' : durationText(ms)),
  ],
]

const refusals: readonly Column<Denials>[] = [
  ['>requests', ({ requests }) => countText(requests)],
  ['>refused', ({ denied }) => countText(denied)],
  ['>share', ({ denied, requests }) => shareText(denied, requests)],
]

export const policyColumns: readonly Column<PolicyReport>[] = [
  ['policy', ({ name, mode }) => name + (mode === 'shadow' ? ' (shadow)' : '')],
  ['limit', limitText],
  ['>asked', ({ checked }) => countText(checked)],
  ['>refused', ({ denied }) => countText(denied)],
  ['>identities', ({ identitiesDenied }) => countText(identitiesDenied)],
  ['>near misses', ({ nearMisses }) => countText(nearMisses)],
  ...denials,
]

export const routeColumns: readonly Column<RouteReport>[] = [
  ['route', ({ route }) => route],
  ...refusals,
  ...denials,
]

export const clientColumns: readonly Column<DeniedClient>[] = [
  ['client', ({ client }) => client],
  ...refusals,
  ['by', ({ policies }) => policies.join(', ')],
  ...denials,
]

/** `8 / 10s`, `8 / month (UTC)`, `2 at once`, or `5 refusals / 1m`. */
function limitText({ limit, counts, windowMs, calendar }: PolicyReport): string {
  if (limit === null) return 'unlimited'
  if (counts === 'leases') return `${countText(limit)} at once`
  const window = calendar ? `${calendar.every} (${calendar.zone})` : durationText(windowMs)
  return `${countText(limit)}${counts === 'strikes' ? ' refusals' : ''} / ${window}`
}
