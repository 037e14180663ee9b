import { usePolled } from '../../api/poll.ts'
import type { Top } from '../../api/types.ts'
import { linkTo } from '../../app-state.ts'
import { brief } from '../../format.ts'
import { Blank, Loaded, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'

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

/** Identities that were denied most in the last minute. */
export function Limited() {
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
