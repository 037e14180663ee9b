import { algorithmOf } from '../algorithms/table.ts'
import type { Check, Receipt } from '../check.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { bucketSize, DrainingUnits } from './draining-units.ts'
import { RecentUnits } from './recent-units.ts'

/** What was admitted here for one key, and the store has to be told of. */
interface Debt {
  /** What was asked, as the store knows it, with the largest limit. */
  check: Check
  /** The same as it was decided here. */
  local: Check
  readonly units: RecentUnits | DrainingUnits
  /** What the store may have taken too: it was asked, and has not answered yet. */
  readonly doubtful: Set<Receipt>
  /** What else was taken here, for refunds of it that come when the debt is paid. */
  receipts: Receipt[]
  batch: Batch
}

/** What is paid at once. */
interface Batch {
  isOwed: boolean
}

/** Units to be charged. */
export interface Due {
  readonly check: Check
  readonly local: Check
  readonly units: number
  readonly receipts: readonly Receipt[]
}

export interface Owed extends Due {
  /** Whether the store was asked, and has not answered yet. */
  readonly isDoubtful: boolean
}

/** As many as a memory store holds keys. The oldest are forgotten first: then an outage has admitted that much too much. */
const mostDebts = 100_000
const mostReceipts = 100

/** What the store is owed, by policy and key. */
export class Debts {
  readonly #debts = new Map<string, Debt>()
  /** What each receipt that is owed for certain is paid with, also where it is not remembered any more. */
  readonly #batches = new WeakMap<Receipt, Batch>()

  get size(): number {
    return this.#debts.size
  }

  /** Adds to what is owed. Leases end by themselves, and are not owed. */
  owe({ check, local, units, receipts, isDoubtful }: Owed): void {
    // A penalty takes nothing from what is admitted.
    if (units === 0 || algorithmOf(check.policy).counts !== 'units') return
    const nowMs = monotonicMs()
    const debt = this.#debtOf(check, local)
    // With a smaller one the store, or the memory here, would hold less than was admitted under a larger one.
    if (check.limit > debt.check.limit) {
      debt.check = check
      debt.local = local
      const size = bucketSize(check, local)
      if (size && debt.units instanceof DrainingUnits) debt.units.resize(size, nowMs)
    }
    debt.units.add(units, nowMs)
    if (isDoubtful) for (const receipt of receipts) debt.doubtful.add(receipt)
    else this.#keep(debt, receipts)
  }

  /** What the store was asked for and has not taken, or may never tell, is owed for certain. */
  confirm(receipt: Receipt): void {
    const debt = this.#debts.get(keyId(receipt.check))
    if (debt?.doubtful.delete(receipt)) this.#keep(debt, [receipt])
  }

  /** What the store has taken, as it says now. Returns whether some of it was owed still: else it was paid, or counts no more. */
  cancelDoubtful(receipt: Receipt): boolean {
    const { check } = receipt
    const debt = this.#debts.get(keyId(check))
    if (!debt?.doubtful.delete(receipt)) return false
    return this.#cancel(check, check.cost) > 0
  }

  /** What nobody has any more, if it is owed: so many units of it count still. The rest of it, if any, is owed for certain. */
  cancel(receipt: Receipt, units: number): void {
    const debt = this.#debts.get(keyId(receipt.check))
    if (debt?.doubtful.delete(receipt)) this.#keep(debt, [receipt])
    if (this.#batches.get(receipt)?.isOwed) this.#cancel(receipt.check, units)
  }

  /** Takes out what one key owes for certain. */
  take(check: Check): Due | undefined {
    const id = keyId(check)
    const debt = this.#debts.get(id)
    if (!debt) return undefined
    let doubtful = 0
    for (const receipt of debt.doubtful) doubtful += receipt.check.cost
    return this.#due(id, debt, doubtful)
  }

  /** Takes out what the first `count` keys owe, what is doubtful too: the store answers again, and has not answered that. */
  takeSome(count: number): readonly Due[] {
    const taken: Due[] = []
    for (const [id, debt] of this.#debts) {
      if (taken.length >= count) break
      this.#keep(debt, [...debt.doubtful])
      debt.doubtful.clear()
      const due = this.#due(id, debt, 0)
      if (due) taken.push(due)
    }
    return taken
  }

  forget(check: Check): void {
    const debt = this.#debts.get(keyId(check))
    if (debt) this.#end(keyId(check), debt)
  }

  #cancel(check: Check, units: number): number {
    const id = keyId(check)
    const debt = this.#debts.get(id)
    if (!debt) return 0
    const nowMs = monotonicMs()
    const cancelled = debt.units.take(units, nowMs)
    if (debt.units.total(nowMs) === 0) this.#end(id, debt)
    return cancelled
  }

  #due(id: string, debt: Debt, kept: number): Due | undefined {
    const { check, local, receipts } = debt
    const nowMs = monotonicMs()
    const units = debt.units.take(Math.max(0, debt.units.total(nowMs) - kept), nowMs)
    // Each payment stands for what was taken before it.
    debt.receipts = []
    debt.batch.isOwed = false
    debt.batch = { isOwed: true }
    if (debt.units.total(nowMs) === 0) this.#end(id, debt)
    return units === 0 ? undefined : { check, local, units, receipts }
  }

  /** Adds to what is owed for certain. The oldest belong to requests that have ended, mostly. */
  #keep({ receipts: kept, batch }: Debt, receipts: readonly Receipt[]): void {
    for (const receipt of receipts) this.#batches.set(receipt, batch)
    kept.push(...receipts)
    if (kept.length > mostReceipts) kept.splice(0, kept.length - mostReceipts)
  }

  #end(id: string, debt: Debt): void {
    this.#debts.delete(id)
    debt.batch.isOwed = false
  }

  #debtOf(check: Check, local: Check): Debt {
    const id = keyId(check)
    const known = this.#debts.get(id)
    if (known) return known
    const size = bucketSize(check, local)
    const units = size
      ? new DrainingUnits(size)
      : new RecentUnits(algorithmOf(check.policy).lifeMs(check.policy))
    const debt = {
      check,
      local,
      units,
      doubtful: new Set<Receipt>(),
      receipts: [],
      batch: { isOwed: true },
    }
    this.#debts.set(id, debt)
    if (this.#debts.size > mostDebts) {
      for (const [oldest, forgotten] of this.#debts) {
        this.#end(oldest, forgotten)
        break
      }
    }
    return debt
  }
}

/** A key of a policy. */
export function keyId({ policy, key }: Check): string {
  return `${policy.id}\0${key}`
}
