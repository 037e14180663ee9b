import { usePolled } from '../../api/poll.ts'
import type { Top } from '../../api/types.ts'
import { linkTo } from '../../parts/app-state.ts'
import { Badge, Blank, Loaded, Name, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { brief } from '../../words/format.ts'

type LimitedKey = Top['lists'][number]['keys'][number] &
  Pick<Top['lists'][number], 'policy' | 'mode'>

const limitedColumns: readonly Column<LimitedKey>[] = [
  {
    title: 'Identity',
    look: 'cut',
    cell: ({ digest, name }) => <Name href={linkTo('keys', digest)} text={name} digest={digest} />,
  },
  {
    title: 'Policy',
    cell: ({ policy, mode }) => (
      <>
        {policy} {mode === 'shadow' && <Badge tone="shadow">shadow</Badge>}
      </>
    ),
  },
  {
    title: 'Denied',
    look: 'num',
    cell: (each) => (
      <span class={each.mode === 'shadow' ? 'toned shadow' : ''}>{brief(each.count)}</span>
    ),
  },
]

const shown = 6

/** Identities that were denied most in the last minute, those that a shadow let pass at the end. */
export function Limited() {
  const top = usePolled<Top>(`top?by=denied&window=1m&most=${shown}`)
  return (
    <Panel title="Limited in the last minute" of={5} aside={<a href={linkTo('top')}>All</a>} flush>
      <Loaded polled={top} what="The top keys">
        {({ lists }) => (
          <Table
            label="Identities that were denied most"
            items={lists
              .flatMap(({ policy, mode, keys }) => keys.map((key) => ({ ...key, policy, mode })))
              .sort((one, other) => order(one) - order(other) || other.count - one.count)
              .slice(0, shown)}
            idOf={({ policy, digest }) => `${policy} ${digest}`}
            columns={limitedColumns}
            blank={<Blank title="Nobody is limited" />}
          />
        )}
      </Loaded>
    </Panel>
  )
}

function order({ mode }: LimitedKey): number {
  return mode === 'shadow' ? 1 : 0
}
