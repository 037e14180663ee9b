import { useState } from 'preact/hooks'
import { clientColumns } from '../report/columns.ts'
import { countText } from '../report/formats.ts'
import type { SimulationReport } from '../report/simulation-report.ts'
import { Panel, Table } from './parts.tsx'

/** Number of rows to show at first, and with each click. */
const pageLength = 100

export function ClientTable({ deniedClients, totals }: SimulationReport) {
  const [wanted, setWanted] = useState('')
  const [shown, setShown] = useState(pageLength)
  const found = deniedClients.filter(({ client }) => client.toLowerCase().includes(wanted))
  const rows = found.slice(0, shown)
  const unlisted = totals.clientsDenied - deniedClients.length
  const rest = unlisted > 0 ? `; ${countText(unlisted)} more are not in this file` : ''
  const find = (text: string) => {
    setWanted(text.trim().toLowerCase())
    setShown(pageLength)
  }
  const title = 'Clients that were refused'
  return (
    <Panel title={title}>
      <label class="row">
        Find a client
        <input class="input" type="search" onInput={(event) => find(event.currentTarget.value)} />
      </label>
      <p class="muted" role="status">
        {`Showing ${countText(rows.length)} of ${countText(found.length)}${rest}.`}
      </p>
      <Table label={title} columns={clientColumns} rows={rows} />
      {rows.length < found.length && (
        <button type="button" class="button" onClick={() => setShown(shown + pageLength)}>
          Show more
        </button>
      )}
    </Panel>
  )
}
