import { useMemo, useState } from 'preact/hooks'
import { usePolled } from '../api/poll.ts'
import type { Audit as AuditAnswer, AuditRecord, Policies, Session } from '../api/types.ts'
import { linkTo } from '../parts/app-state.ts'
import { AuditTable, auditMs, newestOf } from '../parts/audit-table.tsx'
import { Blank, Button, Loaded, Panel, View } from '../parts/basics.tsx'
import { count } from '../words/format.ts'
import { type Opened, UndoDialog } from './policies/dialogs.tsx'

export function Audit({ session, detail }: { session: Session; detail: string }) {
  const audit = usePolled<AuditAnswer>('audit?most=1000', auditMs)
  const { etag } = usePolled<Policies>('policies')
  const [open, setOpen] = useState<Opened>()
  const records = useMemo(() => newestOf(audit.data?.records ?? []), [audit.data])
  const isLast = ({ at }: AuditRecord) =>
    !records.some((each) => each.at > at && each.before !== undefined)
  const mayChange = session.may.includes('policies') && session.features.changes
  return (
    <View title="Audit">
      <Panel
        title="Who did what, and why"
        flush
        aside={<span class="muted small">actions: {count(records.length)}</span>}
      >
        <Loaded polled={audit} what="The audit trail">
          {() => (
            <AuditTable
              label="Audit trail"
              records={records}
              filter={detail}
              blank={<Blank title="No actions yet" />}
              actionsOn={(record) => {
                const { before, target, undone } = record
                if (undone !== undefined) return <a href={linkTo('audit', undone)}>undone</a>
                // A rollback does not change the file.
                const isFile = record.action === 'policies.file'
                if (before === undefined || isFile || !mayChange) return null
                const dialog: Opened = (props) => (
                  <UndoDialog {...props} before={before} record={record} isLast={isLast(record)} />
                )
                return (
                  <Button
                    look="plain"
                    little
                    label={`Undo ${target?.version ?? ''}`}
                    onClick={() => setOpen(() => dialog)}
                  >
                    Undo
                  </Button>
                )
              }}
            />
          )}
        </Loaded>
      </Panel>
      {open?.({ ifMatch: etag, onClose: () => setOpen(undefined) })}
    </View>
  )
}
