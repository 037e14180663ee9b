import { type Column, policyColumns, routeColumns } from '../report/columns.ts'
import { countText, shareText, timeText } from '../report/formats.ts'
import type { PolicyReport, SimulationReport } from '../report/simulation-report.ts'
import { clientTable } from './client-table.ts'
import { element, panel, table } from './elements.ts'
import { heatMap } from './heat-map.ts'
import { limitSlider } from './limit-slider.ts'

/** The door of the data: the same program has written it. */
const report: SimulationReport = JSON.parse(document.getElementById('data')?.textContent ?? '')

const algorithm: Column<PolicyReport> = ['algorithm', (policy) => policy.algorithm]

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
      panel('Policies', table('Policies', [...policyColumns, algorithm], report.policies)),
      panel('Routes', table('Routes', routeColumns, report.routes)),
      clientTable(report),
      ...notes(),
    ),
  )

function heading(): HTMLElement {
  const { log, policyFile, clients } = report
  const span = log.requests === 0 ? '' : ` · ${timeText(log.fromMs)} to ${timeText(log.toMs)} UTC`
  const how = clients === 'obedient' ? 'clients wait as they are told' : 'clients as recorded'
  return element(
    'header',
    {},
    element('h1', {}, `${policyFile} on ${log.files.join(', ')}`),
    element(
      'p',
      { class: 'muted' },
      `${countText(log.requests)} requests (${log.format})${span} · ${how}`,
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
  const share = shareText(totals.denied, totals.requests)
  const clientShare = shareText(totals.clientsDenied, totals.clients)
  return element(
    'dl',
    { class: 'tiles' },
    tile('Denied requests', countText(totals.denied), `${share} of ${countText(totals.requests)}`),
    tile(
      'Clients refused',
      countText(totals.clientsDenied),
      `${clientShare} of ${countText(totals.clients)}`,
    ),
    tile('Delayed', countText(totals.delayed), 'requests that wait in a queue'),
    tile('In shadow', countText(totals.shadowDenied), 'requests that would be denied'),
    tile('Not counted', countText(totals.skipped), 'requests without a policy'),
  )
}

function notes(): readonly HTMLElement[] {
  const { unreadable, late } = report.log
  const texts = [
    ...report.notes,
    ...(late > 0 ? [`${countText(late)} requests came too late to be put in order.`] : []),
    ...(unreadable.lines > 0 ? [`${countText(unreadable.lines)} lines could not be read:`] : []),
    ...unreadable.examples.map(
      ({ file, line, reason, text }) => `${file}:${line}: ${reason}: ${text}`,
    ),
  ]
  if (texts.length === 0) return []
  const items = texts.map((text) => element('li', {}, text))
  return [panel('The log could not tell', element('ul', { class: 'notes' }, ...items))]
}
