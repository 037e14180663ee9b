import { usePolled } from '../api/poll.ts'
import type { Audit, Fleet, Session, Top, Traffic } from '../api/types.ts'
import { linkTo } from '../parts/app-state.ts'
import { AuditTable, auditMs, newestOf } from '../parts/audit-table.tsx'
import { Blank, Loaded, Panel, View } from '../parts/basics.tsx'
import { identityColumns } from '../parts/identity-columns.tsx'
import { Table } from '../parts/table.tsx'
import { count, duration } from '../words/format.ts'
import { FleetPanel } from './overview/fleet-panel.tsx'
import { Numbers } from './overview/numbers.tsx'
import { countColumn, type Row, rowsOf } from './top.tsx'

const shownRows = 6
const limitedColumns = [...identityColumns, { ...countColumn, title: 'Denied' }]

export function Overview({ session }: { session: Session }) {
  const traffic = usePolled<Traffic>('traffic')
  const fleet = usePolled<Fleet>('fleet')
  const audit = usePolled<Audit>('audit?most=20', auditMs)
  const top = usePolled<Top>(`top?by=denied&window=1m&most=${shownRows}`)
  const { metrics } = session.features
  return (
    <View title="Overview" aside={traffic.data && <Span traffic={traffic.data} />}>
      {metrics ? (
        <Loaded polled={traffic} what="Live counts">
          {(data) => <Numbers traffic={data} audit={audit.data} />}
        </Loaded>
      ) : (
        <Panel title="Live counts">
          <Blank title="Nothing is counted">
            Pass the metrics of collectMetrics to createAdmin, and to rateLimit as an observer.
          </Blank>
        </Panel>
      )}
      <div class="grid">
        {metrics && (
          <Panel
            title="Limited in the last two minutes"
            of={5}
            aside={<a href={linkTo('top')}>All</a>}
            flush
          >
            <Loaded polled={top} what="The top keys">
              {(data) => (
                <Table
                  label="Identities that were denied most"
                  items={rowsOf(data)
                    .slice(0, shownRows)
                    .map((row) => ({ ...row, isLifted: isLifted(row, audit.data?.records ?? []) }))}
                  idOf={({ policy, digest }) => `${policy} ${digest}`}
                  columns={limitedColumns}
                  blank={<Blank title="Nobody is limited" />}
                />
              )}
            </Loaded>
          </Panel>
        )}
        <Panel title="What changed" of={7} flush aside={<a href={linkTo('audit')}>All actions</a>}>
          <Loaded polled={audit} what="The audit trail">
            {({ records }) => (
              <AuditTable
                label="Newest actions"
                records={newestOf(records)
                  // Reading the file for the first time changed nothing.
                  .filter(({ action, changes }) => action !== 'policies.file' || changes)
                  .slice(0, shownRows)}
                blank={<Blank title="No changes yet" />}
              />
            )}
          </Loaded>
        </Panel>
        <FleetPanel fleet={fleet} />
      </div>
    </View>
  )
}

/** Returns whether the newest action on a key lifted its denials after the row's count began. */
function isLifted(row: Row, records: Audit['records']): boolean {
  const last = records.find(
    ({ at, target }) =>
      at > row.sinceMs && target?.digest === row.digest && target.policies?.includes(row.policy),
  )
  return last?.phase === 'done' && /^keys\.(unblock|reset)$/.test(last.action)
}

/** Says which processes and time the numbers cover. */
function Span({ traffic }: { traffic: Traffic }) {
  const { spanMs, processes, knownProcesses } = traffic
  const isPart = processes < knownProcesses
  return (
    <span class={isPart ? 'toned near small' : 'muted small'}>
      the last {duration(spanMs)} of{' '}
      {processes === 1 ? 'this process' : `${count(processes)} processes`}
      {isPart && ` · ${processes} of ${knownProcesses} processes visible`}
    </span>
  )
}
