import type { Polled } from '../../api/poll.ts'
import type { Fleet, Live } from '../../api/types.ts'
import { count, latency } from '../../format.ts'
import { Badge, Loaded, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'

type Instance = Fleet['instances'][number]
type Region = NonNullable<Fleet['store']>['regions'][number]

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

const regionColumns: readonly Column<Region>[] = [
  { title: 'Region', cell: ({ region }) => region },
  { title: 'Share', look: 'num', cell: ({ share }) => `${+(100 * share).toFixed(4)} %` },
  { title: 'From share', look: 'num', cell: ({ fromShare }) => count(fromShare) },
  { title: 'Borrowed', look: 'num', cell: ({ borrowed }) => count(borrowed) },
  { title: 'Held', look: 'num', cell: ({ held }) => count(held) },
]

/** The processes, the versions they run, and the store they count in. */
export function FleetPanel({ fleet, live }: { fleet: Polled<Fleet>; live: Live | undefined }) {
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
            {store && store.regions.length > 0 && (
              <Table
                label="Regions of the store"
                items={store.regions}
                idOf={({ region }) => region}
                columns={regionColumns}
              />
            )}
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
      {store && store.grants.taken > 0 && <Grants store={store} />}
    </dl>
  )
}

function Grants({ store: { grants, hotKeys } }: { store: NonNullable<Fleet['store']> }) {
  return (
    <>
      <div>
        <dt>Hot keys</dt>
        <dd>{count(hotKeys)}</dd>
      </div>
      <div>
        <dt>Units of grants</dt>
        <dd>
          {count(grants.taken)} taken, {count(grants.spent)} spent, {count(grants.returned)}{' '}
          returned, {count(grants.lapsed)} lapsed
        </dd>
      </div>
    </>
  )
}
