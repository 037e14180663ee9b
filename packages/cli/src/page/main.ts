import type { PolicyReport, RouteReport, SimulationReport } from '../report/simulation-report.ts'
import { clientTable } from './client-table.ts'
import { type Column, count, duration, element, moment, panel, percent, table } from './elements.ts'
import { heatMap } from './heat-map.ts'
import { limitSlider } from './limit-slider.ts'

/** The door of the data: the same program has written it. */
const report: SimulationReport = JSON.parse(document.getElementById('data')?.textContent ?? '')

type Denials = Pick<RouteReport, 'firstDenialMs' | 'longestDenialMs'>

/** Returns the columns of the first and the longest denial, of a policy or a route. */
function denialColumns<Row extends Denials>(): readonly Column<Row>[] {
  return [
    {
      title: 'First denial',
      cell: ({ firstDenialMs }) => (firstDenialMs === null ? '–' : moment(firstDenialMs)),
    },
    {
      title: 'Longest',
      isNumber: true,
      cell: ({ firstDenialMs, longestDenialMs }) =>
        firstDenialMs === null ? '–' : duration(longestDenialMs),
    },
  ]
}

document
  .getElementById('report')
  ?.append(
    heading(),
    element(
      'main',
      {},
      tiles(),
      limitSlider(report),
      heatMap(report),
      policyTable(),
      routeTable(),
      clientTable(report),
      ...notes(),
    ),
  )

function heading(): HTMLElement {
  const { log, policyFile, clients } = report
  const span = log.requests === 0 ? '' : ` · ${moment(log.fromMs)} to ${moment(log.toMs)} UTC`
  const how = clients === 'obedient' ? 'clients wait as they are told' : 'clients as recorded'
  return element(
    'header',
    {},
    element('h1', {}, `${policyFile} on ${log.files.join(', ')}`),
    element(
      'p',
      { class: 'muted' },
      `${count(log.requests)} requests (${log.format})${span} · ${how}`,
    ),
  )
}

function tiles(): HTMLElement {
  const { totals } = report
  const tile = (title: string, value: string, detail: string) =>
    element(
      'div',
      { class: 'tile' },
      element('dt', {}, title),
      element('dd', { class: 'value' }, value),
      element('dd', { class: 'muted small' }, detail),
    )
  const share = percent(totals.denied / totals.requests)
  const clientShare = percent(totals.clientsDenied / totals.clients)
  return element(
    'dl',
    { class: 'tiles' },
    tile('Denied requests', count(totals.denied), `${share} of ${count(totals.requests)}`),
    tile(
      'Clients refused',
      count(totals.clientsDenied),
      `${clientShare} of ${count(totals.clients)}`,
    ),
    tile('Delayed', count(totals.delayed), 'requests that wait in a queue'),
    tile('In shadow', count(totals.shadowDenied), 'requests that would be denied'),
    tile('Not counted', count(totals.skipped), 'requests without a policy'),
  )
}

function policyTable(): HTMLElement {
  return panel(
    'Policies',
    table(
      'Policies',
      [
        { title: 'Policy', cell: ({ name }) => name },
        {
          title: 'Limit',
          cell: ({ limit, counts, windowMs }) => {
            if (limit === null) return 'unlimited'
            if (counts === 'leases') return `${count(limit)} at once`
            return `${count(limit)}${counts === 'strikes' ? ' refusals' : ''} in ${duration(windowMs)}`
          },
        },
        { title: 'Algorithm', cell: ({ algorithm }) => algorithm },
        { title: 'Mode', cell: ({ mode }) => mode },
        { title: 'Checked', isNumber: true, cell: ({ checked }) => count(checked) },
        { title: 'Denied', isNumber: true, cell: ({ denied }) => count(denied) },
        {
          title: 'Identities denied',
          isNumber: true,
          cell: ({ identitiesDenied }) => count(identitiesDenied),
        },
        { title: 'Near misses', isNumber: true, cell: ({ nearMisses }) => count(nearMisses) },
        ...denialColumns<PolicyReport>(),
      ],
      report.policies,
    ),
  )
}

function routeTable(): HTMLElement {
  return panel(
    'Routes',
    table(
      'Routes',
      [
        { title: 'Route', cell: ({ route }) => route },
        { title: 'Requests', isNumber: true, cell: ({ requests }) => count(requests) },
        { title: 'Denied', isNumber: true, cell: ({ denied }) => count(denied) },
        {
          title: 'Share',
          isNumber: true,
          cell: ({ denied, requests }) => percent(denied / requests),
        },
        ...denialColumns<RouteReport>(),
      ],
      report.routes,
    ),
  )
}

function notes(): readonly HTMLElement[] {
  const { unreadable, late } = report.log
  const texts = [
    ...report.notes,
    ...(late > 0 ? [`${count(late)} requests came too late to be put in order.`] : []),
    ...(unreadable.lines > 0 ? [`${count(unreadable.lines)} lines could not be read:`] : []),
    ...unreadable.examples.map(
      ({ file, line, reason, text }) => `${file}:${line}: ${reason}: ${text}`,
    ),
  ]
  if (texts.length === 0) return []
  const items = texts.map((text) => element('li', {}, text))
  return [panel('The log could not tell', element('ul', { class: 'notes' }, ...items))]
}
