import { usePolled } from '../../api/poll.ts'
import type { History, VersionRecord } from '../../api/types.ts'
import { useNow } from '../../app-state.ts'
import { distance, moment } from '../../format.ts'
import { Badge, Blank, Loaded, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import type { ListProps } from './open-dialog.tsx'

const kindTones = { file: 'none', change: 'accent', rollback: 'near', kill: 'deny' } as const

/** The versions that the store keeps, the newest first. */
export function HistoryPanel({ mayChange, onOpen }: ListProps) {
  const history = usePolled<History>('policies/history')
  const now = useNow()
  const columns = (versions: readonly VersionRecord[]): readonly Column<VersionRecord>[] => [
    {
      title: 'Version',
      cell: ({ id, inForce }) => (
        <>
          <span class="mono">{id}</span> {inForce && <Badge tone="ok">in force</Badge>}
        </>
      ),
    },
    {
      title: 'Kind',
      look: 'wide',
      cell: ({ kind }) => <Badge tone={kindTones[kind]}>{kind}</Badge>,
    },
    { title: 'Author', look: 'wide', cell: ({ author }) => author },
    {
      title: 'Reason',
      look: 'cut wide',
      cell: ({ reason }) => <span title={reason}>{reason}</span>,
    },
    {
      title: 'When',
      look: 'num wide',
      cell: ({ at }) => <span title={moment(at)}>{distance(at, now)}</span>,
    },
    {
      title: '',
      look: 'num',
      cell: (record) => (
        <>
          <button
            type="button"
            class="button little plain"
            aria-label={`Diff of ${record.id}`}
            onClick={() => {
              const before = versions[versions.indexOf(record) + 1]
              onOpen({ what: 'diff', record, before })
            }}
          >
            Diff
          </button>{' '}
          {mayChange && !record.inForce && (
            <button
              type="button"
              class="button little plain"
              aria-label={`Roll back to ${record.id}`}
              onClick={() => onOpen({ what: 'rollback', record })}
            >
              Roll back
            </button>
          )}
        </>
      ),
    },
  ]
  return (
    <Panel title="History" flush aside={<span class="muted small">the last 100 versions</span>}>
      <Loaded polled={history} what="The history">
        {({ versions }) =>
          versions.length === 0 ? (
            <Blank title="Nothing has been changed yet" />
          ) : (
            <Table
              label="History"
              items={versions}
              idOf={({ id, number, at }) => `${id} ${number} ${at}`}
              columns={columns(versions)}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}
