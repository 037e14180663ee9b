import { DurableObject } from 'cloudflare:workers'
import { type Change, type Check, type DecidingOp, type Outcome, Receipt } from '@sluice/core'
import { digestIdentity, engine, stateKey, WorkingSet } from '@sluice/core/backend'

type ManualChange = Extract<Change, { readonly op: 'reset' | 'block' }>
type ReceiptChange = Exclude<Change, ManualChange>
type SentReceipt = Pick<Receipt, 'at' | 'incarnation'>

/** An outcome to transfer: only plain objects can be sent between isolates. */
export interface SentOutcome extends Omit<Outcome, 'policy' | 'receipt'> {
  readonly receipt: SentReceipt | undefined
}

/** A change to transfer. */
export type SentChange =
  | ManualChange
  | {
      readonly op: ReceiptChange['op']
      readonly checks: readonly (Check & { readonly receipt: SentReceipt })[]
    }

const minuteMs = 60_000

/**
 * Keeps counts. Cloudflare runs one object per name worldwide, and one of its events at a time. A decision has no `await`, so no other one can
 * interleave.
 */
export class Counts extends DurableObject {
  #isSweepDue = false

  constructor(ctx: DurableObject['ctx'], env: object) {
    super(ctx, env)
    this.#sql(
      'CREATE TABLE IF NOT EXISTS counts (key TEXT PRIMARY KEY, state TEXT, ends_at INTEGER)',
    )
    this.#sql('CREATE INDEX IF NOT EXISTS counts_ends_at ON counts (ends_at)')
  }

  /** @param now ms since 1970, for tests. @default the clock of the object */
  apply(op: DecidingOp, checks: readonly Check[], now?: number): readonly SentOutcome[] {
    const outcomes = this.#decide(checks, now, (states, at) => engine[op](states, checks, at))
    return outcomes.map(({ policy: _, receipt, ...outcome }) => ({
      ...outcome,
      receipt: receipt && { at: receipt.at, incarnation: receipt.incarnation },
    }))
  }

  change(sent: SentChange, now?: number): readonly boolean[] {
    const change = received(sent)
    return this.#decide(change.checks, now, (states, at) => engine.change(states, change, at))
  }

  /** Runs a minute after a decision, and then every minute while there are counts. */
  alarm(): void {
    this.#isSweepDue = false
    if (this.sweep(Date.now() - minuteMs) > 0) this.#sweepSoon()
  }

  /** Deletes counts that ended before a time, and returns how many are left. */
  sweep(beforeMs: number): number {
    this.#sql('DELETE FROM counts WHERE ends_at < ?', beforeMs)
    return this.#sql('SELECT key FROM counts LIMIT 1').length
  }

  #decide<Answer>(
    checks: readonly Pick<Check, 'policy' | 'key'>[],
    time: number | undefined,
    decide: (states: WorkingSet, now: number) => Answer,
  ): Answer {
    const now = time ?? Date.now()
    if (time === undefined) this.#sweepSoon()
    return this.ctx.storage.transactionSync(() => {
      const stored = new Map<string, string>()
      for (const key of checks.map(stateKey)) {
        const [row] = this.#sql('SELECT state FROM counts WHERE key = ?', digestIdentity(key))
        if (row) stored.set(key, String(row.state))
      }
      const states = new WorkingSet(stored)
      const answer = decide(states, now)
      for (const { key, text, endsAt } of states.changed(now)) {
        const digest = digestIdentity(key)
        if (text === undefined) this.#sql('DELETE FROM counts WHERE key = ?', digest)
        else this.#sql('INSERT OR REPLACE INTO counts VALUES (?, ?, ?)', digest, text, endsAt)
      }
      return answer
    })
  }

  #sweepSoon(): void {
    if (this.#isSweepDue) return
    this.#isSweepDue = true
    void this.ctx.storage.setAlarm(Date.now() + minuteMs)
  }

  #sql(sql: string, ...values: (string | number)[]) {
    return this.ctx.storage.sql.exec(sql, ...values).toArray()
  }
}

function received(change: SentChange): Change {
  if (change.op === 'reset' || change.op === 'block') return change
  const checks = change.checks.map(({ receipt: { at, incarnation }, ...check }) => ({
    ...check,
    receipt: new Receipt(check, at, incarnation),
  }))
  return { op: change.op, checks }
}
