import type { Override } from '../../api/types.ts'
import { Badge, Blank, Button, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { nameOf } from '../../words/change-words.ts'
import { moment } from '../../words/format.ts'
import { limitText } from '../../words/policy-values.ts'
import { type ListProps, RemoveDialog } from './dialogs.tsx'

type OverridesProps = ListProps & { readonly overrides: readonly Override[] }

/** Limits of single identities. */
export function Overrides({ overrides, mayChange, onOpen }: OverridesProps) {
  const columns: readonly Column<Override>[] = [
    {
      title: 'Identity',
      look: 'cut',
      cell: ({ key }) => <span title={nameOf(key)}>{nameOf(key)}</span>,
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
    {
      title: 'Reason',
      look: 'cut wide',
      cell: ({ reason }) => <span title={reason}>{reason ?? '–'}</span>,
    },
    { title: 'From', look: 'roomy', cell: ({ origin }) => <Badge>{origin}</Badge> },
    {
      title: '',
      look: 'act',
      cell: ({ policy, key, origin }) =>
        mayChange &&
        origin === 'change' && (
          <Button
            look="plain"
            little
            onClick={() =>
              onOpen((props) => (
                <RemoveDialog {...props} entry={{ policy, field: 'override', key }} />
              ))
            }
          >
            Remove
          </Button>
        ),
    },
  ]
  return (
    <Panel title="Overrides" flush>
      <Table
        label="Overrides"
        items={overrides}
        idOf={({ policy, key, origin }) => `${origin} ${policy} ${JSON.stringify(key)}`}
        columns={columns}
        blank={
          <Blank title="No identity has a limit of its own">
            A limit is raised for a time at Keys; others stand in the file.
          </Blank>
        }
      />
    </Panel>
  )
}
