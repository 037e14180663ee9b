import type { ChangedState } from '@sluice/core/backend'
import type { Row } from './known-rows.ts'
import type { PostgresQuery } from './options.ts'

/** Time (ms) after which Sluice gives up a connection and stops repeating a call. */
export const patienceMs = 1_000
const minuteMs = 60_000
const maxVersion = Number.MAX_SAFE_INTEGER

interface Decided {
  /** The rows that the decision read, by state key. */
  readonly rows: ReadonlyMap<string, Row>
  readonly changed: readonly ChangedState[]
  /** Time of the decision in ms; `null` for a clock other than the server's. */
  readonly now: number | null
}

type Argument = string | number | null

/** A call to a function from the migration. */
export interface FunctionCall {
  /** Name of the function, without the name of the table. */
  readonly name: string
  readonly args: readonly Argument[]
}

interface DecideCall extends FunctionCall {
  /** Marks the rows as written by the server. */
  written(): void
}

/** Creates the call for a decision. Its arguments contain only numbers and digests. */
export function decideCall({ rows, changed, now }: Decided): DecideCall {
  const version = 1 + Math.floor(Math.random() * maxVersion)
  const changes = new Map(changed.map((change) => [change.key, change]))
  const written = () => {
    for (const { key, text } of changed) {
      const row = rows.get(key)
      if (row) Object.assign(row, { version, text })
    }
  }
  const [only] = changed
  const onlyRow = only && rows.get(only.key)
  if (onlyRow && onlyRow.version > 0 && rows.size === 1 && now !== null) {
    const { digest, version: seen } = onlyRow
    const args = [digest, seen, only.text ?? '', endOf(only), version, now]
    return { name: 'decide_one', args, written }
  }
  // All processes lock rows in the same order.
  const sorted = [...rows].sort(([, one], [, other]) => (one.digest < other.digest ? -1 : 1))
  const states = sorted.map(([key]) => {
    const change = changes.get(key)
    return change ? `"${change.text ?? ''}"` : 'NULL'
  })
  const ends = sorted.map(([key]) => {
    const change = changes.get(key)
    return change ? endOf(change) : 'NULL'
  })
  const args = [
    `{${sorted.map(([, { digest }]) => digest)}}`,
    `{${sorted.map(([, row]) => row.version)}}`,
    changed.length > 0 ? `{${states}}` : null,
    `{${ends}}`,
    version,
    now,
  ]
  return { name: 'decide', args, written }
}

/**
 * Returns the query of a call. It has no parameters, so that the server keeps nothing in the
 * session, unless the query is prepared.
 */
export function queryOf(
  { name, args }: FunctionCall,
  { table, prepare }: { readonly table: string; readonly prepare: boolean },
): PostgresQuery {
  const literals = args.map((one, index) => {
    if (prepare) return `$${index + 1}`
    return typeof one === 'string' ? `'${one}'` : (one ?? 'NULL')
  })
  const prepared = prepare && { name: `${table}_${name}`, values: [...args] }
  const text = `SELECT ${table}_${name}(${literals}) AS reply`
  return { text, query_timeout: patienceMs, ...prepared }
}

/** Rounds up to a minute: updating an indexed column costs several times as much. */
function endOf({ endsAt }: ChangedState): number {
  return Math.ceil(endsAt / minuteMs) * minuteMs
}

/** The server's reply. */
export interface Reply {
  /** The time by the server's clock. */
  readonly nowMs: number
  /** The current rows, by digest, if nothing was written. */
  readonly rows: ReadonlyMap<string, Pick<Row, 'version' | 'text'>> | undefined
}

/** @throws Error for a reply that does not come from the migration's functions */
export function replyOf(row: unknown): Reply {
  const reply = typeof row === 'object' && row !== null && 'reply' in row ? row.reply : undefined
  if (typeof reply !== 'string' || !/^[+-]\d+(\n|$)/.test(reply)) {
    throw new Error('the reply does not come from the functions of postgresMigration()')
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

/**
 * The server's clock, derived from its replies. It is never behind a time that the server has sent.
 * It is never ahead of the server either, unless one of the clocks was set, because a reply arrives
 * after its time was read.
 */
export class ServerClock {
  /**
   * The largest lead of the server over this process's monotonic clock, in ms. Before the first
   * reply the time is 0, which the server refuses.
   */
  #aheadMs = Number.NEGATIVE_INFINITY

  now(): number {
    return Math.max(0, Math.floor(performance.now() + this.#aheadMs))
  }

  /** Adjusts to a reply. @param isRefused true if the server refused this clock's time */
  learn(serverMs: number, isRefused: boolean): void {
    const aheadMs = serverMs - performance.now()
    this.#aheadMs = isRefused ? aheadMs : Math.max(this.#aheadMs, aheadMs)
  }
}
