import { useMemo, useState } from 'preact/hooks'
import { usePolled } from '../api/poll.ts'
import type { Audit as AuditAnswer, AuditRecord } from '../api/types.ts'
import { linkTo, useNow } from '../app-state.ts'
import { count, distance, moment } from '../format.ts'
import { Badge, Blank, Loaded, Panel } from '../parts/basics.tsx'
import { Field } from '../parts/forms.tsx'
import { type Column, Table } from '../parts/table.tsx'

/** The trail is longer than all else. An action on this page refreshes it at once. */
const auditMs = 5_000

const phaseTones = { begun: 'none', done: 'ok', failed: 'deny' } as const

export function Audit() {
  const audit = usePolled<AuditAnswer>('audit?most=1000', auditMs)
  const [filter, setFilter] = useState('')
  const now = useNow()
  const records = useMemo(() => newestOf(audit.data?.records ?? []), [audit.data])
  const wanted = filter.trim().toLowerCase()
  const shown =
    wanted === '' ? records : records.filter((record) => textOf(record).includes(wanted))
  return (
    <>
      <div class="head">
        <h1>Audit</h1>
      </div>
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
          {() =>
            shown.length === 0 ? (
              <Blank
                title={records.length === 0 ? 'Nobody has done anything yet' : 'No action matches'}
              />
            ) : (
              <Table
                label="Audit trail"
                items={shown}
                idOf={({ id, phase }) => `${id} ${phase}`}
                columns={columnsAt(now)}
              />
            )
          }
        </Loaded>
      </Panel>
    </>
  )
}

/** An action has a record before it and one after: the later one says how it ended. */
function newestOf(records: readonly AuditRecord[]): readonly AuditRecord[] {
  const ended = new Set(records.filter(({ phase }) => phase !== 'begun').map(({ id }) => id))
  return records.filter(({ id, phase }) => phase !== 'begun' || !ended.has(id))
}

function textOf({ actor, action, phase, reason, target }: AuditRecord): string {
  return [actor, action, phase, reason, JSON.stringify(target ?? '')].join(' ').toLowerCase()
}

function columnsAt(now: number): readonly Column<AuditRecord>[] {
  return [
    {
      title: 'When',
      cell: ({ at }) => <span title={moment(at)}>{distance(at, now)}</span>,
    },
    { title: 'Who', look: 'slim-cut', cell: ({ actor }) => actor },
    { title: 'Action', cell: ({ action }) => <span class="mono">{action}</span> },
    { title: 'Target', look: 'wide', cell: ({ target }) => <Target target={target} /> },
    {
      title: 'Reason',
      look: 'cut wide',
      cell: ({ reason }) => <span title={reason}>{reason}</span>,
    },
    {
      title: 'Result',
      look: 'num',
      cell: ({ phase }) => <Badge tone={phaseTones[phase]}>{phase}</Badge>,
    },
  ]
}

function Target({ target }: { target: AuditRecord['target'] }) {
  if (!target) return <>–</>
  const { policy, policies, digest, kind, queue, version } = target
  const words = [policy, ...(policies ?? []), queue && `queue ${queue}`, kind].filter(Boolean)
  return (
    <>
      {words.join(', ')}{' '}
      {digest && (
        <a class="mono" href={linkTo('keys', digest)}>
          {digest.slice(0, 8)}
        </a>
      )}
      {version && <span class="mono">{version}</span>}
    </>
  )
}
