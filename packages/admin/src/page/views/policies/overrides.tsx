import type { Override } from '../../api/types.ts'
import { moment } from '../../format.ts'
import { Badge, Blank, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import type { ListProps } from './open-dialog.tsx'
import { limitText } from './policy-values.ts'

type OverridesProps = ListProps & { readonly overrides: readonly Override[] }

/** Limits of single identities. */
export function Overrides({ overrides, mayChange, onOpen }: OverridesProps) {
  const columns: readonly Column<Override>[] = [
    {
      title: 'Identity',
      look: 'cut',
      cell: ({ key }) =>
        Object.entries(key)
          .map(([name, value]) => `${name} ${value}`)
          .join(', '),
    },
    { title: 'Policy', cell: ({ policy }) => policy },
    {
      title: 'Limit',
      look: 'num',
      cell: ({ limit, mode }) => (
        <>
          {limit !== undefined && <b>{limitText(limit)}</b>}{' '}
          {mode && <Badge tone={mode === 'shadow' ? 'shadow' : 'none'}>{mode}</Badge>}
        </>
      ),
    },
    {
      title: 'Until',
      look: 'wide',
      cell: ({ until }) => (until === undefined ? '–' : moment(Date.parse(until))),
    },
    { title: 'Reason', look: 'wide', cell: ({ reason }) => reason ?? '–' },
    { title: 'From', look: 'wide', cell: ({ origin }) => <Badge>{origin}</Badge> },
    {
      title: '',
      look: 'num',
      cell: ({ policy, key, origin }) =>
        mayChange &&
        origin === 'change' && (
          <button
            type="button"
            class="button little plain"
            onClick={() => onOpen({ what: 'remove', entry: { policy, field: 'override', key } })}
          >
            Remove
          </button>
        ),
    },
  ]
  return (
    <Panel title="Overrides" flush>
      {overrides.length === 0 ? (
        <Blank title="No identity has a limit of its own">
          A temporary limit is set at Keys; others stand in the file.
        </Blank>
      ) : (
        <Table
          label="Overrides"
          items={overrides}
          idOf={({ policy, key, origin }) => `${origin} ${policy} ${JSON.stringify(key)}`}
          columns={columns}
        />
      )}
    </Panel>
  )
}
