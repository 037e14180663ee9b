import { countText, durationText, shareText } from '../report/formats.ts'
import type { SimulationReport } from '../report/simulation-report.ts'
import { element, panel, table } from './elements.ts'
import { type Distribution, RateChart } from './rate-chart.ts'

/** Steps of the slider; it is logarithmic, as rates are. */
const steps = 1_000
/** The most clients that the table names. */
const maxListed = 100

/** Shows the rates of clients, with a slider for the limit that tells who would be caught. */
export function limitSlider({ rates, policies }: SimulationReport): HTMLElement {
  const windows = rates.windowsMs.map((windowMs, index) =>
    element('option', { value: String(index) }, durationText(windowMs)),
  )
  const windowChoice = element('select', { id: 'window' }, ...windows)
  const slider = element('input', {
    ...{ type: 'range', id: 'limit', min: '0', max: String(steps), step: '1' },
    'aria-label': 'Limit, on a slider',
  })
  const exact = element('input', { type: 'number', id: 'exact', min: '1', step: '1' })
  const verdict = element('p', { class: 'verdict', role: 'status' })
  const box = element('div', { class: 'chart', role: 'img' })
  const caught = element('div', { id: 'caught' })
  const chart = new RateChart(box)
  let limit = 1

  windowChoice.addEventListener('change', showWindow)
  slider.addEventListener('input', () => move(limitAt(Number(slider.value), maxRate())))
  exact.addEventListener('input', () => {
    const value = Number(exact.value)
    if (Number.isSafeInteger(value) && value >= 1) move(value, exact)
  })

  // Leases and strikes are no rates of requests.
  const quotas = policies.filter(({ counts }) => counts === 'units')
  const [first] = quotas
  const fitting = rates.windowsMs.indexOf(first?.windowMs ?? 0)
  windowChoice.value = String(fitting === -1 ? Math.min(2, windows.length - 1) : fitting)
  // The chart measures its box, which has to stand in the page.
  requestAnimationFrame(showWindow)

  return panel(
    'Move the limit',
    element(
      'div',
      { class: 'controls' },
      element('label', { for: 'exact' }, 'Limit'),
      exact,
      element('label', { for: 'window' }, 'requests in'),
      windowChoice,
    ),
    slider,
    verdict,
    box,
    caught,
  )

  function windowIndex(): number {
    return Number(windowChoice.value)
  }

  function distribution(): Distribution {
    return rates.distribution[windowIndex()] ?? []
  }

  function maxRate(): number {
    return distribution().at(-1)?.[0] ?? 1
  }

  function showWindow(): void {
    const windowMs = rates.windowsMs[windowIndex()] ?? 0
    chart.show(distribution(), windowMs)
    const declared = quotas.find((policy) => policy.windowMs === windowMs)?.limit
    move(declared ?? quantile(distribution(), 0.99))
  }

  function move(to: number, from?: HTMLElement): void {
    limit = Math.max(1, to)
    chart.limit = limit
    slider.value = String(stepOf(limit, maxRate()))
    slider.setAttribute('aria-valuetext', `${countText(limit)} requests`)
    if (from !== exact) exact.value = String(limit)
    const all = clientsIn(distribution())
    const over = clientsIn(distribution().filter(([rate]) => rate > limit))
    const span = windowChoice.selectedOptions[0]?.text ?? ''
    verdict.textContent = `A limit of ${countText(limit)} in ${span} would catch ${countText(over)} of ${countText(all)} clients (${shareText(over, all)}).`
    box.setAttribute('aria-label', `Rates of clients. ${verdict.textContent}`)
    caught.replaceChildren(...whoIsCaught(over))
  }

  function whoIsCaught(over: number): readonly (Node | string)[] {
    const index = windowIndex()
    const rateOf = (client: (typeof rates.clients)[number]) => client.rates[index] ?? 0
    const listed = rates.clients
      .filter((client) => rateOf(client) > limit)
      .toSorted((one, other) => rateOf(other) - rateOf(one))
      .slice(0, maxListed)
    if (listed.length === 0) return []
    const rest = over - listed.length
    return [
      table(
        'Clients that would be caught',
        [
          ['client', ({ client }) => client],
          ['>busiest window', (row) => countText(rateOf(row))],
          ['>times the limit', (row) => String(Number((rateOf(row) / limit).toPrecision(3)))],
          ['>requests', ({ requests }) => countText(requests)],
        ],
        listed,
      ),
      ...(rest > 0 ? [element('p', { class: 'muted' }, `and ${countText(rest)} more`)] : []),
    ]
  }
}

/** The limit at a step: from 1 to just above the busiest client. */
function limitAt(step: number, maxRate: number): number {
  return Math.max(1, Math.round((maxRate + 1) ** (step / steps)))
}

function stepOf(limit: number, maxRate: number): number {
  return Math.round((Math.log(limit) / Math.log(maxRate + 1)) * steps)
}

function clientsIn(distribution: Distribution): number {
  return distribution.reduce((sum, [, clients]) => sum + clients, 0)
}

/** The rate that a share of the clients stays at or below. */
function quantile(distribution: Distribution, share: number): number {
  let left = clientsIn(distribution) * share
  for (const [rate, clients] of distribution) {
    left -= clients
    if (left <= 0) return rate
  }
  return 1
}
