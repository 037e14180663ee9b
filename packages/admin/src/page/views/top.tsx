import { useState } from 'preact/hooks'
import { usePolled } from '../api/poll.ts'
import type { Session, Top as TopAnswer } from '../api/types.ts'
import { useNow } from '../parts/app-state.ts'
import { Badge, Blank, Button, Loaded, Panel, View } from '../parts/basics.tsx'
import { Choice } from '../parts/forms.tsx'
import { identityColumns } from '../parts/identity-columns.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { brief, count, duration, percent } from '../words/format.ts'
import { NearLimit } from './near-limit.tsx'

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

export function Top({ session, detail }: { session: Session; detail: string }) {
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
        <Blank title="Nothing is counted">Pass the metrics of collectMetrics to createAdmin.</Blank>
      ) : by === 'near' ? (
        <NearLimit policy={policy} />
      ) : (
        <Busiest by={by} window={window} policy={policy} />
      )}
    </View>
  )
}

type List = TopAnswer['lists'][number]
export type Row = List['keys'][number] & Pick<List, 'policy' | 'mode' | 'total' | 'sinceMs'>

/** Joins the lists of all policies, with shadow denials at the end. */
export function rowsOf({ lists }: TopAnswer): readonly Row[] {
  return lists
    .flatMap(({ policy, mode, total, sinceMs, keys }) =>
      keys.map((key) => ({ ...key, policy, mode, total, sinceMs })),
    )
    .sort(
      (one, other) =>
        Number(one.mode === 'shadow') - Number(other.mode === 'shadow') || other.count - one.count,
    )
}

/** Says how long the busiest keys have been counted: up to twice the requested window. */
function spanOf({ lists }: TopAnswer, now: number): string {
  const since = Math.min(now, ...lists.map(({ sinceMs }) => sinceMs))
  return since === now ? '' : `the last ${duration(now - since)}`
}

export const countColumn: Column<Row> = {
  title: 'Count',
  look: 'num',
  by: ({ count }) => count,
  cell: ({ count: value, error, mode }) => (
    <span
      class={mode === 'shadow' ? 'toned shadow' : ''}
      title={error > 0 ? `at most ${count(error)} too high` : 'exact'}
    >
      {error > 0 && '≤ '}
      {brief(value)}
    </span>
  ),
}

const columns: readonly Column<Row>[] = [
  ...identityColumns,
  countColumn,
  {
    title: 'Of its policy',
    look: 'num wide',
    by: ({ count, total }) => count / total,
    cell: ({ count, total }) => percent(count / total),
  },
]

function Busiest({ by, window, policy }: Pick<TopAnswer, 'by' | 'window'> & { policy: string }) {
  const now = useNow()
  const query = { by, window, most: '100', ...(policy !== '' && { policy }) }
  const top = usePolled<TopAnswer>(`top?${new URLSearchParams(query)}`)
  const [list] = top.data?.lists ?? []
  return (
    <Panel
      title={policy || 'All policies'}
      flush
      aside={
        list && (
          <>
            <span class="muted small">{top.data && spanOf(top.data, now)}</span>
            <Badge>
              {list.scope === 'fleet' ? `${count(list.processes)} processes` : 'this process'}
            </Badge>
          </>
        )
      }
    >
      <Loaded polled={top} what="The top keys">
        {(data) => (
          <Table
            label="Busiest keys"
            items={rowsOf(data)}
            idOf={(row) => `${row.policy} ${row.digest}`}
            columns={columns}
            filter={{
              hint: 'An identity or a policy',
              textOf: (row) => `${row.name} ${row.digest} ${row.policy}`,
            }}
            blank={<Blank title={by === 'denied' ? 'Nobody is limited' : 'No requests'} />}
          />
        )}
      </Loaded>
    </Panel>
  )
}
