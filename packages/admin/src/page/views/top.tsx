import { useState } from 'preact/hooks'
import { usePolled } from '../api/poll.ts'
import type { Session, Top as TopAnswer } from '../api/types.ts'
import { linkTo, useNow } from '../parts/app-state.ts'
import { Badge, Blank, Button, Loaded, Meter, Name, Panel, View } from '../parts/basics.tsx'
import { Choice } from '../parts/forms.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { brief, count, distance, percent } from '../words/format.ts'
import { NearLimit } from './near-limit.tsx'

type List = TopAnswer['lists'][number]
type Key = List['keys'][number]

const bys = [
  ['near', 'Near a limit'],
  ['denied', 'Denied'],
  ['asked', 'Asked'],
  ['cost', 'Cost'],
] as const
const windows = [
  ['1m', '1 min'],
  ['10m', '10 min'],
  ['1h', '1 h'],
] as const

interface TopProps {
  readonly session: Session
  /** The policy that a link leads to. */
  readonly detail: string
}

export function Top({ session, detail }: TopProps) {
  const [by, setBy] = useState<(typeof bys)[number][0]>('denied')
  const [window, setWindow] = useState<TopAnswer['window']>('1m')
  const [policy, setPolicy] = useState(detail)
  return (
    <View title="Top">
      <div class="row ends filters">
        <Choice label="By" value={by} options={bys} onValue={setBy} />
        {by !== 'near' && (
          <Choice label="Within" value={window} options={windows} onValue={setWindow} />
        )}
        {policy !== '' && <Button onClick={() => setPolicy('')}>All policies</Button>}
      </div>
      {!session.features.metrics ? (
        <Panel title="Busiest keys">
          <Blank title="Nothing is counted">Give createAdmin the metrics of collectMetrics.</Blank>
        </Panel>
      ) : by === 'near' ? (
        <NearLimit policy={policy} />
      ) : (
        <Busiest by={by} window={window} policy={policy} />
      )}
    </View>
  )
}

interface BusiestProps {
  readonly by: TopAnswer['by']
  readonly window: TopAnswer['window']
  readonly policy: string
}

function Busiest({ by, window, policy }: BusiestProps) {
  const query = { by, window, most: '100', ...(policy !== '' && { policy }) }
  const top = usePolled<TopAnswer>(`top?${new URLSearchParams(query)}`)
  const busy = (top.data?.lists ?? [])
    .filter(({ keys }) => keys.length > 0)
    .sort((one, other) => Number(one.mode === 'shadow') - Number(other.mode === 'shadow'))
  return (
    <Loaded polled={top} what="The top keys">
      {() =>
        busy.length === 0 ? (
          <Panel title="Busiest keys">
            <Blank title={by === 'denied' ? 'Nobody is limited' : 'No requests'}>
              Nothing was counted within this time.
            </Blank>
          </Panel>
        ) : (
          <div class="grid halves">
            {busy.map((list) => (
              <TopOf key={list.policy} list={list} by={by} />
            ))}
          </div>
        )
      }
    </Loaded>
  )
}

const verbs = { denied: 'denied', asked: 'asked', cost: 'units asked for' } as const

function TopOf({ list, by }: { list: List; by: TopAnswer['by'] }) {
  const now = useNow()
  const { policy, mode, scope, processes, sinceMs, total, keys } = list
  const columns: readonly Column<Key>[] = [
    {
      title: 'Identity',
      look: 'cut',
      cell: ({ digest, name }) => (
        <Name href={linkTo('keys', digest)} text={name} digest={digest} />
      ),
    },
    {
      title: 'Share',
      look: 'wide',
      cell: (key) => (
        <Meter
          share={key.count / (keys[0]?.count ?? 1)}
          tone={by === 'denied' ? 'deny' : 'accent'}
        />
      ),
    },
    { title: '%', look: 'num', cell: (key) => (total === 0 ? '–' : percent(key.count / total)) },
    {
      title: 'Count',
      look: 'num',
      cell: (key) => (
        <span title={key.error > 0 ? `at most ${count(key.error)} too high` : 'exact'}>
          {key.error > 0 && '≤ '}
          {brief(key.count)}
        </span>
      ),
    },
  ]
  return (
    <Panel
      title={policy}
      flush
      aside={
        <>
          <span class="muted small">
            {count(total)} {verbs[by]} since {distance(sinceMs, now)}
          </span>
          {mode === 'shadow' && <Badge tone="shadow">shadow: let through</Badge>}
          <Badge>{scope === 'fleet' ? `${count(processes)} processes` : 'this process'}</Badge>
        </>
      }
    >
      <Table
        label={`Busiest keys of ${policy}`}
        items={keys}
        idOf={({ digest }) => digest}
        columns={columns}
      />
    </Panel>
  )
}
