import { unreadableSection } from '../input/log-options.ts'
import type { HourReport, PolicyReport, SimulationReport } from '../report/simulation-report.ts'
import { barOf } from '../terminal/progress.ts'
import type { Style } from '../terminal/style.ts'
import { countText, durationText, shareText, table, timeText } from '../terminal/text.ts'

const listedClients = 10
const listedRoutes = 10
const listedHours = 48
const barWidth = 30

/** A simulation as text, for people. */
export function textReport(report: SimulationReport, style: Style): string {
  const { totals } = report
  return [
    ...head(report, style),
    '',
    `Refused   ${style('bold', ofAll(totals.denied, totals.requests, 'requests'))}`,
    `          ${style('bold', ofAll(totals.clientsDenied, totals.clients, 'clients'))}`,
    ...(totals.delayed > 0
      ? [`Held      ${ofAll(totals.delayed, totals.requests, 'requests')}`]
      : []),
    ...(totals.heldBack > 0
      ? [`Not sent  ${ofAll(totals.heldBack, totals.requests, 'requests, by clients that waited')}`]
      : []),
    ...(totals.shadowDenied > 0
      ? [`In shadow ${ofAll(totals.shadowDenied, totals.requests, 'requests would be refused')}`]
      : []),
    ...(totals.skipped > 0
      ? [`Uncounted ${ofAll(totals.skipped, totals.requests, 'requests')}`]
      : []),
    ...section('Policies', policyTable(report), style),
    ...(report.routes.length > 1 ? section('Routes', routeTable(report), style) : []),
    ...(totals.denied > 0 ? section('Clients refused most', clientTable(report), style) : []),
    ...(totals.denied > 0 ? section('Refusals by hour (UTC)', hourLines(report.hours), style) : []),
    ...unreadableSection(report.log, style),
    ...(report.notes.length > 0
      ? section(
          'What the log does not tell',
          report.notes.map((note) => `- ${note}`),
          style,
        )
      : []),
    '',
  ].join('\n')
}

function head({ log, policyFile, clients }: SimulationReport, style: Style): readonly string[] {
  const behaviour = clients === 'obedient' ? ', clients wait as they are told' : ''
  return [
    style('bold', `${policyFile} on ${log.files.join(', ')}${behaviour}`),
    `${countText(log.requests)} requests (${log.format}), ${timeText(log.fromMs)} to ${timeText(log.toMs)} UTC`,
  ]
}

function ofAll(count: number, all: number, what: string): string {
  return `${countText(count)} of ${countText(all)} ${what} (${shareText(count, all)})`
}

function section(title: string, lines: readonly string[], style: Style): readonly string[] {
  return ['', style('bold', title), ...lines]
}

function policyTable({ policies }: SimulationReport): readonly string[] {
  return table(
    [
      ...['policy', 'limit', '>asked', '>refused', '>identities', '>near misses'],
      ...['first refusal', '>longest'],
    ],
    policies.map((policy) => [
      policy.name + (policy.mode === 'shadow' ? ' (shadow)' : ''),
      limitText(policy),
      countText(policy.checked),
      countText(policy.denied),
      countText(policy.identitiesDenied),
      countText(policy.nearMisses),
      ...denialTexts(policy),
    ]),
  )
}

/** `8 / 10s`, `2 at once`, or `5 refusals / 1m`. */
function limitText({ limit, counts, windowMs }: PolicyReport): string {
  if (limit === null) return 'unlimited'
  if (counts === 'leases') return `${countText(limit)} at once`
  return `${countText(limit)}${counts === 'strikes' ? ' refusals' : ''} / ${durationText(windowMs)}`
}

/** The cells of a first and a longest denial. */
function denialTexts({
  firstDenialMs,
  longestDenialMs,
}: Pick<PolicyReport, 'firstDenialMs' | 'longestDenialMs'>): readonly string[] {
  return firstDenialMs === null
    ? ['', '']
    : [timeText(firstDenialMs), durationText(longestDenialMs)]
}

function routeTable({ routes }: SimulationReport): readonly string[] {
  return table(
    ['route', '>requests', '>refused', '>share', 'first refusal', '>longest'],
    routes
      .slice(0, listedRoutes)
      .map(({ route, requests, denied, ...denials }) => [
        route,
        countText(requests),
        countText(denied),
        shareText(denied, requests),
        ...denialTexts(denials),
      ]),
  )
}

function clientTable({ deniedClients }: SimulationReport): readonly string[] {
  const lines = table(
    ['client', '>requests', '>refused', '>share', 'by', 'first refusal', '>longest'],
    deniedClients
      .slice(0, listedClients)
      .map((client) => [
        client.client,
        countText(client.requests),
        countText(client.denied),
        shareText(client.denied, client.requests),
        client.policies.join(', '),
        timeText(client.firstDenialMs),
        durationText(client.longestDenialMs),
      ]),
  )
  const rest = deniedClients.length - listedClients
  return rest > 0 ? [...lines, `and ${countText(rest)} more; --json lists up to 1,000`] : lines
}

function hourLines(hours: readonly HourReport[]): readonly string[] {
  const most = hours.reduce((max, { denied }) => Math.max(max, denied), 0)
  const shown = hours.filter(({ denied }) => denied > 0).slice(0, listedHours)
  const lines = shown.map(
    ({ startMs, denied, requests }) =>
      `${timeText(startMs).slice(0, 16)}  ${barOf(denied / most, barWidth).padEnd(barWidth)}  ${countText(denied)} of ${countText(requests)}`,
  )
  const rest = hours.filter(({ denied }) => denied > 0).length - shown.length
  return rest > 0 ? [...lines, `and ${countText(rest)} more hours`] : lines
}
