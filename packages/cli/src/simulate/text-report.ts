import { unreadableSection } from '../input/log-options.ts'
import { clientColumns, policyColumns, routeColumns } from '../report/columns.ts'
import { countText, shareText, timeText } from '../report/formats.ts'
import type { HourReport, SimulationReport } from '../report/simulation-report.ts'
import { barOf } from '../terminal/progress.ts'
import type { Style } from '../terminal/style.ts'
import { columnTable, section } from '../terminal/text.ts'

const listedClients = 10
const listedRoutes = 10
const listedHours = 48
const barWidth = 30

export function textReport(report: SimulationReport, style: Style): string {
  const { totals, routes } = report
  const part = (title: string, lines: readonly string[]) => section(style('bold', title), lines)
  const sum = (title: string, count: number, what: string): readonly string[] =>
    count > 0 ? [`${title} ${ofAll(count, totals.requests, what)}`] : []
  return [
    ...head(report, style),
    '',
    `Refused   ${style('bold', ofAll(totals.denied, totals.requests, 'requests'))}`,
    `          ${style('bold', ofAll(totals.clientsDenied, totals.clients, 'clients'))}`,
    ...sum('Held     ', totals.delayed, 'requests'),
    ...sum('Not sent ', totals.heldBack, 'requests, by clients that waited'),
    ...sum('In shadow', totals.shadowDenied, 'requests would be refused'),
    ...sum('Uncounted', totals.skipped, 'requests'),
    ...part('Policies', columnTable(policyColumns, report.policies)),
    ...part(
      'Routes',
      routes.length > 1 ? columnTable(routeColumns, routes.slice(0, listedRoutes)) : [],
    ),
    ...part('Clients refused most', totals.denied > 0 ? clientLines(report) : []),
    ...part('Refusals by hour (UTC)', totals.denied > 0 ? hourLines(report.hours) : []),
    ...unreadableSection(report.log, style),
    ...part(
      'What the log does not tell you',
      report.notes.map((note) => `- ${note}`),
    ),
    '',
  ].join('\n')
}

function head({ log, policyFile, clients }: SimulationReport, style: Style): readonly string[] {
  const behaviour = clients === 'obedient' ? ', clients wait as instructed' : ''
  return [
    style('bold', `${policyFile} on ${log.files.join(', ')}${behaviour}`),
    `${countText(log.requests)} requests (${log.format}), ${timeText(log.fromMs)} to ${timeText(log.toMs)} UTC`,
  ]
}

function ofAll(count: number, all: number, what: string): string {
  return `${countText(count)} of ${countText(all)} ${what} (${shareText(count, all)})`
}

function clientLines({ deniedClients }: SimulationReport): readonly string[] {
  const lines = columnTable(clientColumns, deniedClients.slice(0, listedClients))
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
