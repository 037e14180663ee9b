import type { Audit, Traffic as Rates } from '../../api/types.ts'
import { linkTo } from '../../parts/app-state.ts'
import { Badge, Blank, Panel, type Tone } from '../../parts/basics.tsx'
import { Chart, type Line } from '../../parts/chart.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { changeWords } from '../../words/change-words.ts'
import { brief, count, latency, percent } from '../../words/format.ts'

type PolicyRates = Rates['policies'][number]

export function Numbers({ traffic, audit }: { traffic: Rates; audit: Audit | undefined }) {
  const seconds = Math.max(1, traffic.spanMs / 1_000)
  const { requests, denied, shadowDenied, nearMisses, p50Ms, p99Ms } = traffic
  const share = requests === 0 ? 0 : denied / requests
  const tiles: readonly (readonly [label: string, value: string, note: string, tone?: Tone])[] = [
    ['Requests', `${brief(requests / seconds)}/s`, `${count(requests)} in all`],
    ['Denied', percent(share), `${count(denied)} requests`, denied > 0 ? 'deny' : 'none'],
    [
      'Near misses',
      count(nearMisses),
      'over 90% of a limit used',
      nearMisses > 0 ? 'near' : 'none',
    ],
    ['Passed in shadow mode', count(shadowDenied), 'else denied', shadowDenied ? 'shadow' : 'none'],
    [
      'Decision, p99',
      p99Ms === undefined ? '–' : latency(p99Ms),
      p50Ms === undefined ? 'no decision' : `p50 ${latency(p50Ms)}`,
    ],
  ]
  return (
    <>
      <div class="tiles">
        {tiles.map(([label, value, note, tone = 'none']) => (
          <dl key={label} class={`tile ${tone}`}>
            <dt>{label}</dt>
            <dd class="value">{value}</dd>
            <dd class="muted small">{note}</dd>
          </dl>
        ))}
      </div>
      <div class="grid">
        <Traffic traffic={traffic} records={audit?.records ?? []} />
        <ByPolicy traffic={traffic} />
      </div>
    </>
  )
}

function Traffic({ traffic, records }: { traffic: Rates; records: Audit['records'] }) {
  const { points, outages } = traffic
  const [[from = 0] = []] = points
  const line = (label: string, tone: Line['tone'], place: 1 | 2 | 3 | 4): Line => ({
    ...{ label, tone },
    values: points.map((point) => point[place] ?? null),
  })
  const lines = [
    line('Requests', 'accent', 1),
    line('Denied', 'deny', 2),
    line('Near misses', 'near', 3),
    line('In shadow', 'shadow', 4),
  ]
  const legend = lines.map(({ label, tone, values }) => {
    const now = values.at(-1)
    return { label, tone, now: typeof now === 'number' ? `${brief(now)}/s` : '–' }
  })
  const words = legend.map(({ label, now }) => `${label} ${now}`).join(', ')
  return (
    <Panel
      title="Traffic"
      of={7}
      aside={
        <ul class="row small">
          {legend.map(({ label, tone, now }) => (
            <li key={label}>
              <span class={`swatch ${tone}`} /> {label} <b>{now}</b>
            </li>
          ))}
        </ul>
      }
    >
      {points.length < 2 ? (
        <Blank title="The lines start now">They grow while the process runs.</Blank>
      ) : (
        <Chart
          label={`Requests per second over time. Now: ${words}`}
          times={points.map(([at]) => at ?? 0)}
          lines={lines}
          outages={outages}
          marks={records.flatMap(({ at, changes, target }) => {
            if (!changes || at < Number(from) * 1_000) return []
            const words = changes.flatMap(changeWords).join(', ') || 'a version'
            return [{ at: at / 1_000, words, href: linkTo('audit', target?.version) }]
          })}
        />
      )}
    </Panel>
  )
}

const policyColumns: readonly Column<PolicyRates>[] = [
  {
    title: 'Policy',
    look: 'cut',
    cell: ({ policy, shadowDenied }) => (
      <span title={policy}>
        <a href={linkTo('top', policy)}>{policy}</a>{' '}
        {shadowDenied > 0 && <Badge tone="shadow">shadow</Badge>}
      </span>
    ),
  },
  { title: 'Checks', look: 'num', cell: ({ checks }) => brief(checks) },
  { title: 'Near', look: 'num wide', cell: ({ nearMisses }) => brief(nearMisses) },
  {
    title: 'Denied',
    look: 'num',
    cell: ({ denied }) => <span class={denied > 0 ? 'toned deny' : ''}>{brief(denied)}</span>,
  },
  {
    title: 'Shadow',
    look: 'num wide',
    cell: ({ shadowDenied }) =>
      shadowDenied > 0 ? <span class="toned shadow">{brief(shadowDenied)}</span> : '–',
  },
]

function ByPolicy({ traffic }: { traffic: Rates }) {
  const { policies: rates, policiesInAll: all, denied } = traffic
  const more = all > rates.length && `the ${count(rates.length)} most refused of ${count(all)}`
  const byAll = rates.reduce((sum, each) => sum + each.denied, 0)
  return (
    <Panel title="By policy" of={5} flush aside={<span class="muted small">{more}</span>}>
      <Table
        label="Counts by policy"
        items={rates}
        idOf={({ policy }) => policy}
        columns={policyColumns}
        blank={<Blank title="No policy has been checked yet" />}
      />
      {byAll > denied && (
        <p class="body muted small">A request denied by several policies is counted for each.</p>
      )}
    </Panel>
  )
}
