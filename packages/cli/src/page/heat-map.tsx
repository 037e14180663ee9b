import { useState } from 'preact/hooks'
import { countText, shareText, timeText } from '../report/formats.ts'
import type { HourReport, SimulationReport } from '../report/simulation-report.ts'
import { Panel, Scrolling } from './parts.tsx'

const measures: Readonly<Record<string, (hour: HourReport) => number>> = {
  'denied requests': ({ denied }) => denied,
  'denied clients': ({ clientsDenied }) => clientsDenied,
  requests: ({ requests }) => requests,
}

const hourMs = 3_600_000
const hours = Array.from({ length: 24 }, (_, hour) => hour)

export function HeatMap({ hours: reports }: SimulationReport) {
  const [measure, setMeasure] = useState('denied requests')
  const measured = (report: HourReport) => measures[measure]?.(report) ?? 0
  const byHour = new Map(reports.map((report) => [Math.floor(report.startMs / hourMs), report]))
  const days = [...new Set(reports.map(({ startMs }) => timeText(startMs).slice(0, 10)))]
  const max = Math.max(1, ...reports.map(measured))
  const label = `Hours by ${measure}`
  return (
    <Panel title="By hour (UTC)">
      <label class="row">
        Colour by
        <select
          class="input"
          value={measure}
          onChange={(event) => setMeasure(event.currentTarget.value)}
        >
          {Object.keys(measures).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <Scrolling label={label}>
        <table class="heat" aria-label={label}>
          <thead>
            <tr>
              <th scope="col">Day</th>
              {hours.map((hour) => (
                <th key={hour} scope="col">
                  {String(hour).padStart(2, '0')}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {days.map((day) => (
              <tr key={day}>
                <th scope="row">{day}</th>
                {hours.map((hour) => {
                  const report = byHour.get(Date.parse(`${day}T00:00:00Z`) / hourMs + hour)
                  return (
                    <td key={hour} {...(report && cellOf(report, measured(report) / max))}>
                      <span class="unseen">{report ? countText(measured(report)) : 'no log'}</span>
                    </td>
                  )
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolling>
    </Panel>
  )
}

/** @param share of the busiest hour */
function cellOf({ requests, denied, clientsDenied }: HourReport, share: number) {
  // A square root, so that a quiet hour differs from an empty one.
  const strength = share === 0 ? 0 : 0.15 + 0.85 * Math.sqrt(share)
  return {
    class: 'cell',
    title: `${countText(requests)} requests, ${countText(denied)} denied (${shareText(denied, requests)}), ${countText(clientsDenied)} clients`,
    style: { '--strength': `${Math.round(strength * 100)}%` },
  }
}
