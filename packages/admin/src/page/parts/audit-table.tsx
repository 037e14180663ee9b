import type { ComponentChildren } from 'preact'
import type { AuditRecord, Lookup } from '../api/types.ts'
import { Badge } from '../parts/basics.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { changeWords } from '../words/change-words.ts'
import { distance, endText, moment } from '../words/format.ts'
import { linkTo, useNow } from './app-state.ts'

/** The trail is longer than everything else. An action on this page refreshes it at once. */
export const auditMs = 5_000

interface AuditTableProps {
  readonly label: string
  readonly records: readonly AuditRecord[]
  readonly actionsOn?: (record: AuditRecord) => ComponentChildren
  readonly blank?: ComponentChildren
  /** The text of a filter, if any. */
  readonly filter?: string
}

export function AuditTable({ label, records, actionsOn, blank, filter }: AuditTableProps) {
  const now = useNow()
  const columns: readonly Column<AuditRecord>[] = [
    {
      title: 'When',
      cell: ({ at }) => (
        <span title={moment(at)}>
          {endText(at)} <span class="muted wide">{distance(at, now)}</span>
        </span>
      ),
    },
    { title: 'Who', look: 'slim-cut', cell: ({ actor }) => actor },
    {
      title: 'What',
      look: 'cut',
      cell: (record) => (
        <>
          {record.phase !== 'done' && <Badge tone="deny">{record.phase}</Badge>}{' '}
          <What {...record} />
        </>
      ),
    },
    {
      title: 'Reason',
      look: 'cut wide',
      cell: ({ reason }) => <span title={reason}>{reason}</span>,
    },
    ...(actionsOn ? [{ title: '', look: 'act', cell: actionsOn } as const] : []),
  ]
  return (
    <Table
      label={label}
      items={records}
      idOf={({ id, phase, at }) => `${id} ${phase} ${at}`}
      columns={columns}
      blank={blank}
      {...(filter !== undefined && {
        filter: { hint: 'An actor, a policy, a reason', initial: filter, textOf },
      })}
    />
  )
}

function textOf({ actor, action, phase, reason, target, changes = [] }: AuditRecord): string {
  const words = [actor, action, phase, reason, JSON.stringify(target ?? '')]
  return [...words, ...changes.flatMap(changeWords)].join(' ')
}

/** Describes what a record changed, or whom it was about. */
function What({ action, reason, target = {}, changes = [] }: AuditRecord) {
  const { policy, policies, digest, kind, queue, version } = target
  const words = changes.flatMap(changeWords).join(', ')
  const read = words === '' ? 'policy file read' : `policy file: ${words}`
  const changed = action === 'policies.file' ? read : words
  if (changed !== '')
    return (
      <a href={linkTo('audit', version)} title={`${changed}: ${reason}`}>
        {changed}
      </a>
    )
  const about = [policy, ...(policies ?? []), queue && `queue ${queue}`, kind].filter(Boolean)
  return (
    <>
      <span class="mono">{action}</span> {about.join(', ')}{' '}
      {digest && (
        <a class="mono" href={linkTo('keys', digest)}>
          {digest.slice(0, 8)}
        </a>
      )}
    </>
  )
}

/** An action has a record before and one after it: the later one has the result. */
export function newestOf(records: readonly AuditRecord[]): readonly AuditRecord[] {
  const ended = new Set(records.filter(({ phase }) => phase !== 'begun').map(({ id }) => id))
  return records.filter(({ id, phase }) => phase !== 'begun' || !ended.has(id))
}

/** Returns whether an action was about a key: its counts, or its own limit. */
export function concerns({ target, changes = [] }: AuditRecord, { digest, key }: Lookup): boolean {
  if (target?.digest === digest) return true
  const text = key && JSON.stringify(key)
  return (
    text !== undefined &&
    changes.some(({ path, from, to }) => {
      return path === 'overrides' && JSON.stringify([from, to]).includes(`"key":${text}`)
    })
  )
}
