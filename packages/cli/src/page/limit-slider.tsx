import { useState } from 'preact/hooks'
import { countText, durationText, shareText } from '../report/formats.ts'
import type { SimulationReport } from '../report/simulation-report.ts'
import { Panel, Table } from './parts.tsx'
import { type Distribution, RateChart } from './rate-chart.tsx'

/** Steps of the slider, which is logarithmic. */
const steps = 1_000
const maxListed = 100

export function LimitSlider({ rates, policies }: SimulationReport) {
  // Leases and strikes are not request rates.
  const quotas = policies.filter(({ counts }) => counts === 'units')
  const fitting = rates.windowsMs.indexOf(quotas[0]?.windowMs ?? 0)
  const [index, setIndex] = useState(fitting === -1 ? 2 : fitting)
  const [moved, setMoved] = useState<number>()
  const windowMs = rates.windowsMs[index] ?? 0
  const distribution = rates.distribution[index] ?? []
  const declared = quotas.find((policy) => policy.windowMs === windowMs)?.limit
  const limit = Math.max(1, moved ?? declared ?? quantile(distribution, 0.99))
  // From 1 to just above the busiest client.
  const most = (distribution.at(-1)?.[0] ?? 1) + 1
  const span = durationText(windowMs)
  const all = clientsIn(distribution)
  const over = clientsIn(distribution.filter(([rate]) => rate > limit))
  const verdict = `A limit of ${countText(limit)} in ${span} would catch ${countText(over)} of ${countText(all)} clients (${shareText(over, all)}).`
  const rateOf = (client: (typeof rates.clients)[number]) => client.rates[index] ?? 0
  const listed = rates.clients
    .filter((client) => rateOf(client) > limit)
    .toSorted((one, other) => rateOf(other) - rateOf(one))
    .slice(0, maxListed)
  const moveTo = (value: number) => {
    if (Number.isSafeInteger(value) && value >= 1) setMoved(value)
  }
  const show = (window: number) => {
    setIndex(window)
    setMoved(undefined)
  }
  return (
    <Panel title="Move the limit">
      <div class="row">
        <label class="row">
          Limit
          <input
            class="input"
            {...{ type: 'number', min: 1, step: 1, value: limit }}
            onInput={(event) => moveTo(Number(event.currentTarget.value))}
          />
        </label>
        <label class="row">
          requests in
          <select
            class="input"
            value={index}
            onChange={(event) => show(Number(event.currentTarget.value))}
          >
            {rates.windowsMs.map((each, window) => (
              <option key={each} value={window}>
                {durationText(each)}
              </option>
            ))}
          </select>
        </label>
      </div>
      <input
        type="range"
        {...{ min: 0, max: steps, 'aria-label': 'Limit, on a slider' }}
        aria-valuetext={`${countText(limit)} requests`}
        value={Math.round((Math.log(limit) / Math.log(most)) * steps)}
        onInput={({ currentTarget }) =>
          moveTo(Math.max(1, Math.round(most ** (Number(currentTarget.value) / steps))))
        }
      />
      <p class="verdict" role="status">
        {verdict}
      </p>
      <RateChart label={`Rates of clients. ${verdict}`} {...{ distribution, limit, span }} />
      {listed.length > 0 && (
        <Table
          label="Clients that would be caught"
          columns={[
            ['client', ({ client }) => client],
            ['>busiest window', (row) => countText(rateOf(row))],
            ['>times the limit', (row) => String(Number((rateOf(row) / limit).toPrecision(3)))],
            ['>requests', ({ requests }) => countText(requests)],
          ]}
          rows={listed}
        />
      )}
      {over > listed.length && <p class="muted">{`and ${countText(over - listed.length)} more`}</p>}
    </Panel>
  )
}

function clientsIn(distribution: Distribution): number {
  return distribution.reduce((sum, [, clients]) => sum + clients, 0)
}

/** Returns the rate that a share of the clients does not exceed. */
function quantile(distribution: Distribution, share: number): number {
  let left = clientsIn(distribution) * share
  for (const [rate, clients] of distribution) {
    left -= clients
    if (left <= 0) return rate
  }
  return 1
}
