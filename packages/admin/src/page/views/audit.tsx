import { useMemo, useState } from 'preact/hooks'
import { usePolled } from '../api/poll.ts'
import type { Audit as AuditAnswer, AuditRecord, Policies, Session } from '../api/types.ts'
import { AuditTable, auditMs, newestOf } from '../parts/audit-table.tsx'
import { Blank, Button, Loaded, Panel, View } from '../parts/basics.tsx'
import { Field } from '../parts/forms.tsx'
import { changeWords } from '../words/change-words.ts'
import { count } from '../words/format.ts'
import { DiffDialog, type Opened, UndoDialog } from './policies/dialogs.tsx'

export function Audit({ session }: { session: Session }) {
  const audit = usePolled<AuditAnswer>('audit?most=1000', auditMs)
  const { etag } = usePolled<Policies>('policies')
  const [filter, setFilter] = useState('')
  const [open, setOpen] = useState<Opened>()
  const records = useMemo(() => newestOf(audit.data?.records ?? []), [audit.data])
  const wanted = filter.trim().toLowerCase()
  const shown =
    wanted === '' ? records : records.filter((record) => textOf(record).includes(wanted))
  const mayChange = session.may.includes('policies') && session.features.changes
  return (
    <View title="Audit">
      <Panel
        title="Who did what, and why"
        flush
        aside={<span class="muted small">{count(shown.length)} actions</span>}
      >
        <div class="bar">
          <Field
            label="Filter"
            value={filter}
            onValue={setFilter}
            placeholder="An actor, a policy, a reason"
          />
        </div>
        <Loaded polled={audit} what="The audit trail">
          {() => (
            <AuditTable
              label="Audit trail"
              records={shown}
              blank={
                <Blank
                  title={
                    records.length === 0 ? 'Nobody has done anything yet' : 'No action matches'
                  }
                />
              }
              actionsOn={(record) => (
                <VersionActions
                  record={record}
                  mayChange={mayChange}
                  onOpen={(dialog) => setOpen(() => dialog)}
                />
              )}
            />
          )}
        </Loaded>
      </Panel>
      {open?.({ ifMatch: etag, onClose: () => setOpen(undefined) })}
    </View>
  )
}

function textOf({ actor, action, phase, reason, target, changes = [] }: AuditRecord): string {
  const words = [
    actor,
    action,
    phase,
    reason,
    JSON.stringify(target ?? ''),
    ...changes.flatMap(changeWords),
  ]
  return words.join(' ').toLowerCase()
}

interface VersionActionsProps {
  readonly record: AuditRecord
  readonly mayChange: boolean
  readonly onOpen: (dialog: Opened) => void
}

/** A version can be compared with the one before it, and taken back. */
function VersionActions({ record, mayChange, onOpen }: VersionActionsProps) {
  const { before, target } = record
  const version = target?.version
  if (before === undefined || version === undefined) return null
  return (
    <>
      <Button
        look="plain"
        little
        label={`Diff of ${version}`}
        onClick={() => onOpen((props) => <DiffDialog {...props} record={record} />)}
      >
        Diff
      </Button>
      {mayChange && (
        <Button
          look="plain"
          little
          label={`Undo ${version}`}
          onClick={() =>
            onOpen((props) => <UndoDialog {...props} before={before} record={record} />)
          }
        >
          Undo
        </Button>
      )}
    </>
  )
}
