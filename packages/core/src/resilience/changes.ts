import { algorithmOf } from '../algorithms/table.ts'
import type { Due } from '../ledger/debts.ts'
import type { UncountedUnits } from '../ledger/uncounted-units.ts'
import { giveBack, type Held, type HeldOp, hasChanged, type Receipt } from '../model/check.ts'
import type { Change, ManualChange, Outcome, Store } from '../model/store.ts'
import { SluiceError } from '../options/errors.ts'
import { ControlCall } from '../waiting/control-call.ts'
import type { Deadlines } from '../waiting/deadlines.ts'
import { applyChange, denialsOf } from './denials.ts'
import type { OutageWatch, StoreParts } from './outage-watch.ts'
import type { CallingLimiter, PendingAsk } from './pending-ask.ts'

/** Deadline (ms) of a reset or block: no request waits for it, and it calls the store twice. */
const controlMs = 1_000

/** Number of debts or deferred changes sent at once: the store has other traffic too. */
const atOnce = 100

/** Number of changes that may wait. Older ones are dropped: units and leases expire anyway. */
const maxDeferred = 10_000

interface ChangesOptions extends Pick<StoreParts, 'monitor' | 'fallback'> {
  readonly outage: OutageWatch
  readonly uncounted: UncountedUnits
  deadlinesOf(durationMs: number): Deadlines
}

/** Changes what a store has counted, and reports to it what was decided without it. */
export class Changes {
  readonly #options: ChangesOptions
  /** Refunds and releases that wait until the store is back. */
  readonly #deferred: Change[] = []

  constructor(options: ChangesOptions) {
    this.#options = options
  }

  /** Returns whether anything (for `renew`, everything) was there; false if the store failed. */
  async change(op: HeldOp, checks: readonly Held[], caller: CallingLimiter): Promise<boolean> {
    const { outage } = this.#options
    if (!outage.isClosed) {
      if (op !== 'renew') this.#deferred.push({ op, checks })
      if (this.#deferred.length > maxDeferred) this.#deferred.shift()
      return false
    }
    const deadlines = this.#options.deadlinesOf(caller.deadlineMs)
    const asking = () => deadlines.inTime(applyChange(caller.store, { op, checks }))
    try {
      return hasChanged(op, await outage.attempt(asking, caller))
    } catch (error) {
      caller.onFailure(op, error)
      return false
    }
  }

  /**
   * @throws or rejects if the store failed, was late or is unavailable: then nothing changes here
   * either. A store that supports control calls then no longer resets or blocks keys
   */
  async overwrite(change: ManualChange, caller: CallingLimiter): Promise<readonly boolean[]> {
    const { outage, fallback } = this.#options
    if (!outage.isClosed) {
      throw new SluiceError(
        'SLUICE_NOT_DONE',
        `the store is unavailable, so the ${change.op} was not done; try again once storeHealth().isAway is false`,
      )
    }
    const deadlineMs = Math.max(caller.deadlineMs, controlMs)
    const control = new ControlCall(deadlineMs)
    const deadlines = this.#options.deadlinesOf(deadlineMs)
    let missed: unknown
    const asking = () =>
      deadlines.inTime(applyChange(caller.store, change, control), (error) => {
        missed = error
      })
    // Changes that are late together share an error, and so are one incident.
    const changed = await outage.attempt(asking, caller).catch((error: unknown) => {
      throw missed ? control.failure(missed) : error
    })
    fallback.overwrite(await fallback.keyed(change, caller.store))
    return changed
  }

  /**
   * Handles the charge of a late answer: keeps it if the request was admitted meanwhile, and gives
   * it back otherwise.
   * @param found empty if there will be no answer
   */
  answeredLate(ask: PendingAsk, found: readonly Outcome[]): void {
    const { debts } = this.#options.fallback
    const back: Receipt[] = []
    let isKept = false
    for (const index of ask.checks.keys()) {
      const receipt = found[index]?.receipt
      const local = ask.decision?.outcomes[index]?.receipt
      if (!receipt) {
        if (local) debts.confirm(local)
      } else if (this.#keeps(receipt, local, ask)) isKept = true
      else back.push(receipt)
    }
    for (const receipt of back) {
      void giveBack(receipt, receipt.check.cost, (op, checks) =>
        this.#change(ask.caller.limiter.store, { op, checks }),
      )
    }
    if (isKept || back.length > 0) {
      this.#options.monitor.tell({ type: 'late-reply', charge: isKept ? 'kept' : 'refunded' })
    }
    this.payFor(ask)
  }

  #keeps(receipt: Receipt, local: Receipt | undefined, { op, decision }: PendingAsk): boolean {
    if (!decision?.allowed && op !== 'charge') return false
    // A local lease runs for the request, or nobody would end the store's lease.
    if (algorithmOf(receipt.check.policy).counts === 'leases') return false
    if (decision?.source !== 'fallback') return true
    const { fallback, uncounted } = this.#options
    // An answer that came before it may lack the units.
    uncounted.forget([receipt.check])
    // If the debt was given back or paid meanwhile, it must not be paid twice.
    return local !== undefined && fallback.debts.cancelDoubtful(local, receipt)
  }

  /** Reports everything that was admitted without the store. */
  async payAll(store: Store): Promise<void> {
    void this.#doDeferred(store)
    const { debts } = this.#options.fallback
    while (debts.size > 0 && this.#options.outage.isClosed) {
      const dues = debts.takeSome(atOnce)
      // The rest is paid with the next request of each key, or after the next outage.
      if (dues.length === 0 || !(await this.#pay(store, dues))) break
    }
  }

  async #doDeferred(store: Store): Promise<void> {
    while (this.#deferred.length > 0 && this.#options.outage.isClosed) {
      const some = this.#deferred.splice(0, atOnce)
      await Promise.all(some.map((change) => this.#change(store, change)))
    }
  }

  /** Pays the certain debts of a request's keys, if the store is available. */
  payFor({ checks, caller }: PendingAsk): void {
    if (!this.#options.outage.isClosed) return
    const dues = checks.flatMap((check) => this.#options.fallback.debts.take(check) ?? [])
    if (dues.length > 0) void this.#pay(caller.limiter.store, dues)
  }

  /** Makes a change now. If it fails, units stay taken, which is safe. */
  async #change(store: Store, change: Change): Promise<boolean> {
    try {
      return (await applyChange(store, change)).includes(true)
    } catch {
      return false
    }
  }

  /** Charges debts, and notifies observers. Returns false if the store did not take all. */
  async #pay(store: Store, dues: readonly Due[]): Promise<boolean> {
    const paid = await Promise.all(dues.map((due) => this.#charge(store, due)))
    const keys = paid.filter(Boolean).length
    const units = paid.reduce<number>((sum, one) => sum + (one ?? 0), 0)
    if (keys > 0) this.#options.monitor.tell({ type: 'reconciled', keys, units })
    return !paid.includes(undefined)
  }

  /** Charges a debt. Returns the units; `undefined` if the store failed: then the debt stays. */
  async #charge(store: Store, due: Due): Promise<number | undefined> {
    const { fallback, uncounted } = this.#options
    const units = fallback.unitsOwed(due)
    if (units === 0) return 0
    try {
      denialsOf(store)?.forget([due.check])
      uncounted.forget([due.check])
      const [outcome] = await store.apply('charge', [{ ...due.check, cost: units }])
      // An answer that came meanwhile may lack the units.
      uncounted.forget([due.check])
      due.part.settle(outcome?.receipt, (op, checks) => this.#change(store, { op, checks }))
      return units
    } catch {
      // The next request finds out whether the store is available.
      fallback.debts.oweAgain({ ...due, units })
      return undefined
    }
  }
}
