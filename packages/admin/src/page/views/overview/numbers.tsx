import { brief, count, latency, percent } from '../../format.ts'
import { Badge, Blank, Panel, type Tone } from '../../parts/basics.tsx'
import { Chart, type Line } from '../../parts/chart.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import type { Answerer, LiveWindow, PolicyRates } from './live-window.ts'

/** Requests and refusals, now and over time. */
export function Numbers({ window }: { window: LiveWindow }) {
  const seconds = Math.max(1, window.spanMs / 1_000)
  const { requests, denied, shadowDenied, nearMisses, points, p50Ms, p99Ms } = window
  const share = requests === 0 ? 0 : denied / requests
  return (
    <>
      <div class="tiles">
        <Tile
          label="Requests"
          value={`${brief(requests / seconds)}/s`}
          note={`${count(requests)} in all`}
        />
        <Tile
          label="Denied"
          value={percent(share)}
          tone={denied > 0 ? 'deny' : 'none'}
          note={`${count(denied)} requests`}
        />
        <Tile
          label="Near misses"
          value={count(nearMisses)}
          tone={nearMisses > 0 ? 'near' : 'none'}
          note="over 90% of a limit used"
        />
        <Tile
          label="Denied in shadow"
          value={count(shadowDenied)}
          tone={shadowDenied > 0 ? 'shadow' : 'none'}
          note="and let through"
        />
        <Tile
          label="Decision, p99"
          value={p99Ms === undefined ? '–' : latency(p99Ms)}
          note={p50Ms === undefined ? 'no decision' : `p50 ${latency(p50Ms)}`}
        />
      </div>
      <div class="grid">
        <Traffic points={points} />
        <ByPolicy rates={window.policies} />
      </div>
    </>
  )
}

interface TileProps {
  readonly label: string
  readonly value: string
  readonly note: string
  readonly tone?: Tone
}

function Tile({ label, value, note, tone = 'none' }: TileProps) {
  return (
    <dl class={`tile ${tone}`}>
      <dt>{label}</dt>
      <dd class="value">{value}</dd>
      <dd class="muted small">{note}</dd>
    </dl>
  )
}

function Traffic({ points }: { points: LiveWindow['points'] }) {
  const lines: readonly Line[] = [
    { label: 'Requests', tone: 'accent', values: points.map(({ requests }) => requests) },
    { label: 'Denied', tone: 'deny', values: points.map(({ denied }) => denied) },
    { label: 'Near misses', tone: 'near', values: points.map(({ nearMisses }) => nearMisses) },
    { label: 'In shadow', tone: 'shadow', values: points.map(({ shadowDenied }) => shadowDenied) },
  ]
  const legend = lines.map(({ label, tone, values }) => {
    return { label, tone, now: `${brief(Math.round((values.at(-1) ?? 0) * 10) / 10)}/s` }
  })
  const words = legend.map(({ label, now }) => `${label} ${now}`).join(', ')
  return (
    <Panel
      title="Traffic"
      of={7}
      aside={
        <ul class="legend">
          {legend.map(({ label, tone, now }) => (
            <li key={label}>
              <span class={`swatch ${tone}`} /> {label} <b>{now}</b>
            </li>
          ))}
        </ul>
      }
    >
      {points.length < 2 ? (
        <Blank title="The line begins now">It grows while this page is open.</Blank>
      ) : (
        <Chart
          label={`Requests per second over time. Now: ${words}`}
          times={points.map(({ at }) => at)}
          lines={lines}
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
        {policy} {shadowDenied > 0 && <Badge tone="shadow">shadow</Badge>}
      </span>
    ),
  },
  { title: 'Checks', look: 'num', cell: ({ checks }) => brief(checks) },
  { title: 'Near', look: 'num wide', cell: ({ nearMisses }) => brief(nearMisses) },
  {
    title: 'Denied',
    look: 'num',
    cell: ({ denied, shadowDenied }) => (
      <span class={shadowDenied > 0 ? 'tone-shadow' : denied > 0 ? 'tone-deny' : ''}>
        {brief(denied + shadowDenied)}
      </span>
    ),
  },
  {
    title: 'Share',
    look: 'num',
    cell: ({ checks, denied, shadowDenied }) =>
      checks === 0 ? '–' : percent((denied + shadowDenied) / checks),
  },
]

function ByPolicy({ rates }: { rates: readonly PolicyRates[] }) {
  const sorted = [...rates].sort(
    (one, other) => other.denied - one.denied || other.checks - one.checks,
  )
  return (
    <Panel title="By policy" of={5} flush>
      {sorted.length === 0 ? (
        <Blank title="No policy has been asked yet" />
      ) : (
        <Table
          label="Counts by policy"
          items={sorted}
          idOf={({ policy }) => policy}
          columns={policyColumns}
        />
      )}
    </Panel>
  )
}

/** Writes `denial-cache` as `Denial cache`. */
function answererText(name: string): string {
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`.replaceAll('-', ' ')
}

export function Latency({ answerers }: { answerers: readonly Answerer[] }) {
  const all = answerers.reduce((sum, each) => sum + each.count, 0)
  const columns: readonly Column<Answerer>[] = [
    { title: 'Answered by', cell: ({ name }) => answererText(name) },
    { title: 'Share', look: 'num', cell: ({ count }) => percent(count / all) },
    {
      title: 'p50',
      look: 'num',
      cell: ({ p50Ms }) => (p50Ms === undefined ? '–' : latency(p50Ms)),
    },
    {
      title: 'p99',
      look: 'num',
      cell: ({ p99Ms }) => (p99Ms === undefined ? '–' : latency(p99Ms)),
    },
  ]
  return (
    <Panel title="Latency by who answered" of={4} flush>
      {answerers.length === 0 ? (
        <Blank title="No decision in this span" />
      ) : (
        <Table
          label="Latency by who answered"
          items={answerers}
          idOf={({ name }) => name}
          columns={columns}
        />
      )}
    </Panel>
  )
}
