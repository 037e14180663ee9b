import { useEffect, useState } from 'preact/hooks'
import { type Polled, usePolled } from '../api/poll.ts'
import type { Fleet, Live, Policies, Session, Top } from '../api/types.ts'
import { linkTo } from '../app-state.ts'
import { brief, count, duration, latency, percent } from '../format.ts'
import { Badge, Blank, Loaded, Panel, type Tone } from '../parts/basics.tsx'
import { Chart, type Line } from '../parts/chart.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { type Answerer, LiveHistory, type LiveWindow, type PolicyRates } from './live-window.ts'
import { StateNotices } from './state-notices.tsx'

/** Goes on while another view is shown, and as long as the page is open. */
const history = new LiveHistory()

/** Makes rates of the live counts. */
export function useLiveWindow({ data, at, error }: Polled<Live>): LiveWindow | undefined {
  const [window, setWindow] = useState(history.window)
  useEffect(() => {
    if (!data || at === undefined || error !== undefined) return
    history.note(data, at)
    setWindow(history.window)
  }, [data, at, error])
  return window
}

interface OverviewProps {
  readonly session: Session
  readonly live: Polled<Live>
  readonly window: LiveWindow | undefined
}

export function Overview({ session, live, window }: OverviewProps) {
  const fleet = usePolled<Fleet>('fleet')
  const policies = usePolled<Policies>('policies')
  return (
    <>
      <div class="head">
        <h1>Overview</h1>
        {window && (
          <span class="muted small">
            {window.isSinceStart ? 'since the start' : `the last ${duration(window.spanMs)}`} of
            this process
          </span>
        )}
      </div>
      <div class="stack">
        <StateNotices policies={policies.data} live={live.data} fleet={fleet.data} />
        {session.features.metrics ? (
          <Loaded polled={live} what="Live counts">
            {() => window && <Numbers window={window} />}
          </Loaded>
        ) : (
          <Panel title="Live counts">
            <Blank title="Nothing is counted">
              Give createAdmin the metrics of collectMetrics, and rateLimit the same as an observer.
            </Blank>
          </Panel>
        )}
        <div class="grid">
          {session.features.metrics && window && <Latency answerers={window.answerers} />}
          {session.features.metrics && <Limited />}
          <FleetPanel fleet={fleet} live={live.data} />
        </div>
      </div>
    </>
  )
}

function Numbers({ window }: { window: LiveWindow }) {
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

function Latency({ answerers }: { answerers: readonly Answerer[] }) {
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

interface LimitedKey {
  readonly id: string
  readonly policy: string
  readonly digest: string
  readonly name: string | undefined
  readonly count: number
}

const limitedColumns: readonly Column<LimitedKey>[] = [
  {
    title: 'Identity',
    look: 'cut',
    cell: ({ digest, name }) => (
      <a href={linkTo('keys', digest)} class={name === undefined ? 'mono' : ''}>
        {name ?? digest}
      </a>
    ),
  },
  { title: 'Policy', cell: ({ policy }) => policy },
  { title: 'Denied', look: 'num', cell: (each) => brief(each.count) },
]

function Limited() {
  const top = usePolled<Top>('top?by=denied&window=1m&most=6')
  return (
    <Panel title="Limited in the last minute" of={4} aside={<a href={linkTo('top')}>All</a>} flush>
      <Loaded polled={top} what="The top keys">
        {({ lists }) => {
          const keys = lists
            .flatMap(({ policy, keys }) =>
              keys.map((key) => ({
                ...key,
                name: key.name,
                policy,
                id: `${policy} ${key.digest}`,
              })),
            )
            .sort((one, other) => other.count - one.count)
            .slice(0, 6)
          if (keys.length === 0) return <Blank title="Nobody is limited" />
          return (
            <Table
              label="Identities that were denied most"
              items={keys}
              idOf={({ id }) => id}
              columns={limitedColumns}
            />
          )
        }}
      </Loaded>
    </Panel>
  )
}

type Instance = Fleet['instances'][number]

const instanceColumns: readonly Column<Instance>[] = [
  {
    title: 'Process',
    cell: ({ id, isThis }) => (
      <>
        <span class="mono">{id.slice(0, 8)}</span> {isThis && <Badge tone="accent">this</Badge>}
      </>
    ),
  },
  {
    title: 'Version',
    cell: ({ version, refused }) => (
      <>
        <span class="mono">{version}</span>{' '}
        {refused && <Badge tone="deny">refused {refused.version}</Badge>}
      </>
    ),
  },
]

function FleetPanel({ fleet, live }: { fleet: Polled<Fleet>; live: Live | undefined }) {
  const versions = fleet.data?.versions ?? []
  const all = fleet.data?.instances.length ?? 0
  return (
    <Panel
      title="Fleet"
      of={4}
      flush
      aside={
        fleet.data && (
          <Badge tone={versions.length > 1 ? 'near' : 'ok'}>
            {versions[0]?.instances ?? all} of {all} on one version
          </Badge>
        )
      }
    >
      <Loaded polled={fleet} what="The fleet">
        {({ instances, store }) => (
          <>
            <Table
              label="Processes of the fleet"
              items={instances}
              idOf={({ id }) => id}
              columns={instanceColumns}
            />
            {(store || live) && <StoreHealth store={store} live={live} />}
          </>
        )}
      </Loaded>
    </Panel>
  )
}

function StoreHealth({ store, live }: { store: Fleet['store']; live: Live | undefined }) {
  const breaker = store?.breaker ?? live?.store.breaker ?? 'closed'
  const skewMs = store?.clockSkewMs ?? (live ? live.store.clockSkewSeconds * 1_000 : 0)
  return (
    <dl class="facts">
      <div>
        <dt>Store</dt>
        <dd>
          {store?.name ?? 'memory'}{' '}
          {store?.isAway ? <Badge tone="deny">away</Badge> : <Badge tone="ok">answers</Badge>}
        </dd>
      </div>
      <div>
        <dt>Breaker</dt>
        <dd>{breaker}</dd>
      </div>
      <div>
        <dt>Keys owed</dt>
        <dd>{count(store?.keysOwed ?? live?.store.keysOwed ?? 0)}</dd>
      </div>
      <div>
        <dt>Clock skew</dt>
        <dd>{latency(Math.abs(Math.round(skewMs)))}</dd>
      </div>
    </dl>
  )
}
