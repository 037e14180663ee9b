import type { SimulationReport } from '../report/simulation-report.ts'
import { count, duration, element, moment, panel, percent, table } from './elements.ts'

/** Rows that are drawn at first, and with each press of the button. */
const pageLength = 100

/** Lists the clients that were refused, with a field to find one of them. */
export function clientTable({ deniedClients, totals }: SimulationReport): HTMLElement {
  const search = element('input', { type: 'search', id: 'search', autocomplete: 'off' })
  const more = element('button', { type: 'button' }, 'Show more')
  const told = element('p', { class: 'muted', role: 'status' })
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
    told,
    box,
    more,
  )

  function draw(): void {
    const wanted = search.value.trim().toLowerCase()
    const found = deniedClients.filter(({ client }) => client.toLowerCase().includes(wanted))
    const rows = found.slice(0, shown)
    const unlisted = totals.clientsDenied - deniedClients.length
    const rest = unlisted > 0 ? `; ${count(unlisted)} more are not in this file` : ''
    told.textContent = `${count(rows.length)} of ${count(found.length)} are shown${rest}.`
    more.hidden = rows.length === found.length
    box.replaceChildren(
      table(
        'Clients that were refused',
        [
          { title: 'Client', cell: ({ client }) => client },
          { title: 'Requests', isNumber: true, cell: ({ requests }) => count(requests) },
          { title: 'Denied', isNumber: true, cell: ({ denied }) => count(denied) },
          {
            title: 'Share',
            isNumber: true,
            cell: ({ denied, requests }) => percent(denied / requests),
          },
          { title: 'By', cell: ({ policies }) => policies.join(', ') },
          { title: 'First denial', cell: ({ firstDenialMs }) => moment(firstDenialMs) },
          {
            title: 'Longest',
            isNumber: true,
            cell: ({ longestDenialMs }) => duration(longestDenialMs),
          },
        ],
        rows,
      ),
    )
  }
}
