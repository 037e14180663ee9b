import type { Polled } from '../../api/poll.ts'
import type { Fleet } from '../../api/types.ts'
import { Badge, Facts, Loaded, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { count, latency, percent } from '../../words/format.ts'

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

/** The processes, their versions, and their store. */
export function FleetPanel({ fleet }: { fleet: Polled<Fleet> }) {
  const versions = fleet.data?.versions ?? []
  const all = fleet.data?.instances.length ?? 0
  const one = versions[0]?.instances ?? all
  const isAway = fleet.data?.store?.isAway
  return (
    <Panel
      title="Fleet"
      flush
      aside={
        fleet.data && (
          <Badge tone={isAway || versions.length > 1 ? 'near' : 'ok'}>
            {isAway ? 'other processes unknown' : `${one} of ${all} on one version`}
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
            {store && <StoreHealth store={store} />}
          </>
        )}
      </Loaded>
    </Panel>
  )
}

function StoreHealth({ store }: { store: NonNullable<Fleet['store']> }) {
  return (
    <Facts
      facts={[
        [
          'Store',
          <>
            {store.name}{' '}
            {store.isAway ? <Badge tone="deny">away</Badge> : <Badge tone="ok">answers</Badge>}
          </>,
        ],
        ['Breaker', store.breaker],
        ['Keys owed', count(store.keysOwed)],
        ['Clock skew', latency(Math.abs(Math.round(store.clockSkewMs)))],
        store.hotKeys > 0 && ['Hot keys', count(store.hotKeys)],
        store.regions.length > 0 && [
          'Shares of regions',
          store.regions.map(({ region, share }) => `${region} ${percent(share)}`).join(', '),
        ],
      ]}
    />
  )
}
