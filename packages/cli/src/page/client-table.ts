import { clientColumns } from '../report/columns.ts'
import { countText } from '../report/formats.ts'
import type { SimulationReport } from '../report/simulation-report.ts'
import { element, panel, table } from './elements.ts'

/** Rows that are drawn at first, and with each press of the button. */
const pageLength = 100

/** Lists the clients that were refused, with a field to find one of them. */
export function clientTable({ deniedClients, totals }: SimulationReport): HTMLElement {
  const search = element('input', { type: 'search', id: 'search', autocomplete: 'off' })
  const more = element('button', { type: 'button' }, 'Show more')
  const status = element('p', { class: 'muted', role: 'status' })
  const box = element('div')
  let shown = pageLength

  search.addEventListener('input', () => {
    shown = pageLength
    draw()
  })
  more.addEventListener('click', () => {
    shown += pageLength
    draw()
  })
  draw()

  return panel(
    'Clients that were refused',
    element(
      'div',
      { class: 'controls' },
      element('label', { for: 'search' }, 'Find a client'),
      search,
    ),
    status,
    box,
    more,
  )

  function draw(): void {
    const wanted = search.value.trim().toLowerCase()
    const found = deniedClients.filter(({ client }) => client.toLowerCase().includes(wanted))
    const rows = found.slice(0, shown)
    const unlisted = totals.clientsDenied - deniedClients.length
    const rest = unlisted > 0 ? `; ${countText(unlisted)} more are not in this file` : ''
    status.textContent = `${countText(rows.length)} of ${countText(found.length)} are shown${rest}.`
    more.hidden = rows.length === found.length
    box.replaceChildren(table('Clients that were refused', clientColumns, rows))
  }
}
