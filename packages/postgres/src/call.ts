import type { ChangedState } from '@sluice/core/backend'
import type { Row } from './known-rows.ts'

const minuteMs = 60_000
const maxVersion = Number.MAX_SAFE_INTEGER

interface Decided {
  /** The rows that the decision has read, by state key. */
  readonly rows: ReadonlyMap<string, Row>
  readonly changed: readonly ChangedState[]
  /** Time of the decision in ms; `undefined` by another clock than the server's. */
  readonly now: number | undefined
}

interface DecideCall {
  readonly text: string
  /** Notes in the rows that the server has written them. */
  written(): void
}

/**
 * Writes the call of a decision. It has no parameters, so that PgBouncer may send it anywhere: it
 * consists of digests in base64url and of numbers.
 */
export function decideCall(table: string, { rows, changed, now }: Decided): DecideCall {
  const version = 1 + Math.floor(Math.random() * maxVersion)
  const at = now ?? 'NULL'
  const changes = new Map(changed.map((change) => [change.key, change]))
  const written = () => {
    for (const { key, text } of changed) {
      const row = rows.get(key)
      if (row) Object.assign(row, { version, text })
    }
  }
  const [only] = changed
  const row = only && rows.get(only.key)
  if (row && row.version > 0 && rows.size === 1 && now !== undefined) {
    const args = `'${row.digest}', ${row.version}, '${only.text ?? ''}', ${endOf(only)}`
    return { text: `SELECT ${table}_decide_one(${args}, ${version}, ${at}) AS reply`, written }
  }
  const digests: string[] = []
  const seen: number[] = []
  const states: string[] = []
  const ends: (number | 'NULL')[] = []
  for (const [key, row] of rows) {
    const change = changes.get(key)
    digests.push(row.digest)
    seen.push(row.version)
    states.push(change ? `"${change.text ?? ''}"` : 'NULL')
    ends.push(change ? endOf(change) : 'NULL')
  }
  const newStates = changed.length > 0 ? `'{${states}}'` : 'NULL'
  const args = `'{${digests}}', '{${seen}}', ${newStates}, '{${ends}}', ${version}, ${at}`
  return { text: `SELECT ${table}_decide(${args}) AS reply`, written }
}

/** Rounds up to a minute: an update of an indexed column costs several times as much. */
function endOf({ endsAt }: ChangedState): number {
  return Math.ceil(endsAt / minuteMs) * minuteMs
}

/** The answer of the server. */
export interface Reply {
  /** The time by its clock. */
  readonly nowMs: number
  /** The rows as they are, by digest, if nothing was written. */
  readonly rows: ReadonlyMap<string, Pick<Row, 'version' | 'text'>> | undefined
}

/** @throws Error for an answer that the functions of the migration do not give */
export function replyOf(row: unknown): Reply {
  const reply = typeof row === 'object' && row !== null && 'reply' in row ? row.reply : undefined
  if (typeof reply !== 'string' || !/^[+-]\d+(\n|$)/.test(reply)) {
    throw new Error('the answer is none of the functions of postgresMigration()')
  }
  const [head = '', ...lines] = reply.split('\n')
  const nowMs = Number(head.slice(1))
  if (head.startsWith('+')) return { nowMs, rows: undefined }
  const rows = new Map<string, Pick<Row, 'version' | 'text'>>()
  for (const line of lines) {
    const [digest = '', version] = line.split(' ', 2)
    const text = line.slice(digest.length + (version?.length ?? 0) + 2)
    rows.set(digest, { version: Number(version), text: text || undefined })
  }
  return { nowMs, rows }
}
