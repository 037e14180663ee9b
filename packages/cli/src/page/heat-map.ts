import { countText, shareText } from '../report/formats.ts'
import type { HourReport, SimulationReport } from '../report/simulation-report.ts'
import { element, panel, scrolling } from './elements.ts'

interface Measure {
  readonly title: string
  valueOf(hour: HourReport): number
}

const measures: readonly [Measure, ...Measure[]] = [
  { title: 'denied requests', valueOf: ({ denied }) => denied },
  { title: 'denied clients', valueOf: ({ clientsDenied }) => clientsDenied },
  { title: 'requests', valueOf: ({ requests }) => requests },
]

const hourMs = 3_600_000
const hours = Array.from({ length: 24 }, (_, hour) => hour)

/** Shows the hours of the log: a row for each day, in UTC. */
export function heatMap({ hours: reports }: SimulationReport): HTMLElement {
  const choice = element(
    'select',
    { id: 'measure' },
    ...measures.map(({ title }, index) => element('option', { value: String(index) }, title)),
  )
  const box = element('div')
  const draw = () => {
    const measure = measures[Number(choice.value)] ?? measures[0]
    const label = `Hours by ${measure.title}`
    box.replaceChildren(scrolling(label, grid(reports, measure, label)))
  }
  choice.addEventListener('change', draw)
  draw()
  return panel(
    'By hour (UTC)',
    element(
      'div',
      { class: 'controls' },
      element('label', { for: 'measure' }, 'Colour by'),
      choice,
    ),
    box,
  )
}

function grid(reports: readonly HourReport[], measure: Measure, label: string): HTMLElement {
  const byHour = new Map(reports.map((report) => [Math.floor(report.startMs / hourMs), report]))
  const days = [...new Set(reports.map(({ startMs }) => dayOf(startMs)))]
  const max = Math.max(1, ...reports.map((report) => measure.valueOf(report)))
  const head = [
    element('th', { scope: 'col' }, 'Day'),
    ...hours.map((hour) => element('th', { scope: 'col' }, String(hour).padStart(2, '0'))),
  ]
  const rows = days.map((day) => {
    const first = Date.parse(`${day}T00:00:00Z`) / hourMs
    const cells = hours.map((hour) => cellOf(byHour.get(first + hour), measure, max))
    return element('tr', {}, element('th', { scope: 'row' }, day), ...cells)
  })
  return element(
    'table',
    { class: 'heat', 'aria-label': label },
    element('thead', {}, element('tr', {}, ...head)),
    element('tbody', {}, ...rows),
  )
}

function cellOf(report: HourReport | undefined, measure: Measure, max: number): HTMLElement {
  if (!report) return element('td', {}, element('span', { class: 'unseen' }, 'no log'))
  const value = measure.valueOf(report)
  const share = shareText(report.denied, report.requests)
  const title = `${countText(report.requests)} requests, ${countText(report.denied)} denied (${share}), ${countText(report.clientsDenied)} clients`
  const cell = element(
    'td',
    { class: 'cell', title },
    element('span', { class: 'unseen' }, countText(value)),
  )
  // A square root, so that a quiet hour is told from an empty one.
  const strength = value === 0 ? 0 : 0.15 + 0.85 * Math.sqrt(value / max)
  cell.style.setProperty('--strength', `${Math.round(strength * 100)}%`)
  return cell
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
