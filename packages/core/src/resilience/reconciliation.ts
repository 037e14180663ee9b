import type { Check } from '../check.ts'
import type { Decision } from '../decision.ts'
import { isPromise } from '../maybe-promise.ts'
import type { Outcome, Store, StoreOp } from '../store.ts'
import type { Debt } from './debts.ts'
import { DeferredOps } from './deferred-ops.ts'
import type { AskOp, Fallback } from './fallback.ts'
import type { ResilienceEvent } from './resilience-event.ts'

/** How many debts are paid at once on return. */
const debtsAtOnce = 100

/** Brings a store, when it is back, to know what was decided without it. */
export class Reconciliation {
  readonly #store: Store
  readonly #fallback: Fallback
  readonly #tell: (event: ResilienceEvent) => void
  readonly #deferred = new DeferredOps()

  constructor(store: Store, fallback: Fallback, tell: (event: ResilienceEvent) => void) {
    this.#store = store
    this.#fallback = fallback
    this.#tell = tell
  }

  /** Does it on return. */
  defer(op: StoreOp, checks: readonly Check[]): void {
    this.#deferred.add(op, checks)
  }

  /** What an answer took that came too late: kept for whom was let pass meanwhile, given back for whom was refused. */
  answeredLate(op: AskOp, outcomes: readonly Outcome[], meanwhile: Decision): void {
    if (op === 'peek') return
    const held: Check[] = []
    for (const { receipt } of outcomes) if (receipt) held.push({ ...receipt.check, receipt })
    if (held.length === 0) return
    const back = held.filter((check) => !this.#isKept(check, meanwhile))
    if (back.length > 0) this.#apply('refund', back)
    const charge = back.length < held.length ? 'kept' : 'refunded'
    this.#tell({ type: 'late-reply', charge })
  }

  /** Whether what a late answer took stands for what was admitted meanwhile. */
  #isKept(check: Check, meanwhile: Decision): boolean {
    if (!meanwhile.allowed || this.#fallback.isGivenBack(meanwhile)) return false
    if (meanwhile.source !== 'fallback') return true
    // The lease that runs is the one that was given meanwhile; and a debt that was paid must not be paid twice.
    return check.policy.algorithm !== 'concurrency' && this.#fallback.debts.strike(check) > 0
  }

  /** Tells the store of all that was admitted without it. */
  async payAll(mayGoOn: () => boolean): Promise<void> {
    for (const { op, checks } of this.#deferred.takeAll()) this.#apply(op, checks)
    const { debts } = this.#fallback
    let keys = 0
    let units = 0
    while (debts.size > 0 && mayGoOn()) {
      const paid = await Promise.all(debts.takeSome(debtsAtOnce).map((debt) => this.#pay(debt)))
      for (const each of paid) {
        if (each !== undefined && each > 0) keys += 1
        units += each ?? 0
      }
      // What the store does not take now it is told with the next request of the key, or the next time.
      if (paid.includes(undefined)) break
    }
    if (keys > 0) this.#tell({ type: 'reconciled', keys, units })
  }

  /** Before a key is asked for again, the store is told what it has taken meanwhile: both travel in this order. */
  payFor(checks: readonly Check[]): void {
    for (const check of checks) {
      const debt = this.#fallback.debts.take(check)
      if (!debt) continue
      void this.#pay(debt).then((units) => {
        if (units) this.#tell({ type: 'reconciled', keys: 1, units })
      })
    }
  }

  /** The units that were charged: 0 when nothing counts any more. `undefined` when the store failed: then the debt stands. */
  async #pay(debt: Debt): Promise<number | undefined> {
    const units = this.#fallback.unitsOwed(debt)
    if (units === 0) return 0
    try {
      await this.#store.apply('charge', [{ ...debt.check, cost: units }])
      return units
    } catch {
      // Whoever asks next finds out how the store is.
      this.#fallback.debts.owe(debt.check, debt.local, units)
      return undefined
    }
  }

  #apply(op: StoreOp, checks: readonly Check[]): void {
    try {
      const outcomes = this.#store.apply(op, checks)
      // What cannot be given back stays taken: that admits no more than it should.
      if (isPromise(outcomes)) outcomes.then(undefined, () => undefined)
    } catch {
      // As above.
    }
  }
}
