import { usePolled } from '../../api/poll.ts'
import type { Audit, Lookup } from '../../api/types.ts'
import { linkTo } from '../../parts/app-state.ts'
import { AuditTable, auditMs, concerns, newestOf } from '../../parts/audit-table.tsx'
import { Panel } from '../../parts/basics.tsx'

const shown = 5

/** Lists the newest actions on a key. */
export function KeyTrail({ lookup }: { lookup: Lookup }) {
  const { data } = usePolled<Audit>('audit?most=1000', auditMs)
  const records = newestOf(data?.records ?? []).filter((record) => concerns(record, lookup))
  if (records.length === 0) return null
  return (
    <Panel title="What was done to it" flush aside={<a href={linkTo('audit')}>Audit</a>}>
      <AuditTable label="Actions on the key" records={records.slice(0, shown)} />
    </Panel>
  )
}
