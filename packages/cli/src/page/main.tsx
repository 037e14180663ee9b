import { render } from 'preact'
import { policyColumns, routeColumns } from '../report/columns.ts'
import { countText, shareText, timeText } from '../report/formats.ts'
import type { SimulationReport } from '../report/simulation-report.ts'
import { ClientTable } from './client-table.tsx'
import { HeatMap } from './heat-map.tsx'
import { LimitSlider } from './limit-slider.tsx'
import { Panel, Table } from './parts.tsx'

/** Decodes the data, which the same program has written. */
const report: SimulationReport = JSON.parse(document.getElementById('data')?.textContent ?? '')

const box = document.getElementById('report')
if (box) render(<Report {...report} />, box)

function Report({ log, policyFile, clients, totals, policies, routes, notes }: SimulationReport) {
  const span = log.requests === 0 ? '' : ` · ${timeText(log.fromMs)} to ${timeText(log.toMs)} UTC`
  const how = clients === 'obedient' ? 'clients wait as instructed' : 'clients as recorded'
  const ofAll = (part: number, all: number) => `${shareText(part, all)} of ${countText(all)}`
  const { late, unreadable } = log
  const texts = [
    ...notes,
    ...(late > 0 ? [`${countText(late)} requests came too late to be sorted.`] : []),
    ...(unreadable.lines > 0 ? [`${countText(unreadable.lines)} lines could not be read:`] : []),
    ...unreadable.examples.map((each) => `${each.file}:${each.line}: ${each.reason}: ${each.text}`),
  ]
  const tiles = [
    ['Denied requests', totals.denied, ofAll(totals.denied, totals.requests)],
    ['Clients refused', totals.clientsDenied, ofAll(totals.clientsDenied, totals.clients)],
    ['Delayed', totals.delayed, 'requests that wait in a queue'],
    ['In shadow', totals.shadowDenied, 'requests that would be denied'],
    ['Not counted', totals.skipped, 'requests without a policy'],
  ] as const
  return (
    <>
      <header>
        <h1>{`${policyFile} on ${log.files.join(', ')}`}</h1>
        <p class="muted">{`${countText(log.requests)} requests (${log.format})${span} · ${how}`}</p>
      </header>
      <main class="stack">
        <dl class="tiles">
          {tiles.map(([title, value, detail]) => (
            <div key={title} class="tile none">
              <dt>{title}</dt>
              <dd class="value">{countText(value)}</dd>
              <dd class="muted small">{detail}</dd>
            </div>
          ))}
        </dl>
        <LimitSlider {...report} />
        <HeatMap {...report} />
        <Panel title="Policies">
          <Table
            label="Policies"
            columns={[...policyColumns, ['algorithm', ({ algorithm }) => algorithm]]}
            rows={policies}
          />
        </Panel>
        <Panel title="Routes">
          <Table label="Routes" columns={routeColumns} rows={routes} />
        </Panel>
        <ClientTable {...report} />
        {texts.length > 0 && (
          <Panel title="Not in the log">
            <ul class="notes">
              {texts.map((text) => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          </Panel>
        )}
      </main>
    </>
  )
}
