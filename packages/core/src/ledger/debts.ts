import { algorithmOf } from '../algorithms/table.ts'
import { type Check, keyId, type Receipt } from '../model/check.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { bucketSize, DrainingUnits } from './draining-units.ts'
import { RecentUnits } from './recent-units.ts'

/** Units of one key that this process admitted, and that the store has not counted. */
interface Debt {
  /** The check for the store, with the largest limit of the requests. */
  check: Check
  /** The same check as this process decided it. */
  local: Check
  readonly units: RecentUnits | DrainingUnits
  /**
   * Receipts of units that the store may have taken too: it was asked, and has not answered yet.
   */
  readonly doubtful: Set<Receipt>
  /** Receipts of the other units, for refunds that come after the debt is paid. */
  receipts: Receipt[]
  batch: Batch
}

/** Debts that are paid in one charge. */
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
  /** True when the store was asked, and has not answered yet. */
  readonly isDoubtful: boolean
}

/**
 * The most keys with debts, as many as a memory store holds. The oldest debts are dropped first,
 * and the store never counts them.
 */
const maxDebts = 100_000
const maxReceipts = 100

/** Units that the store has not counted, by policy and key. */
export class Debts {
  readonly #debts = new Map<string, Debt>()
  /** The batch that pays each certain debt, also of receipts that were dropped. */
  readonly #batches = new WeakMap<Receipt, Batch>()

  get size(): number {
    return this.#debts.size
  }

  /** Adds a debt. Leases end by themselves, and are no debt. */
  owe({ check, local, units, receipts, isDoubtful }: Owed): void {
    // A penalty takes nothing from admitted requests.
    if (units === 0 || algorithmOf(check.policy).counts !== 'units') return
    const nowMs = monotonicMs()
    const debt = this.#debtOf(check, local)
    // With a smaller limit, the store or the local memory would hold less than was admitted under
    // the larger one.
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

  /** Makes a doubtful debt certain: the store did not take the units, or will never tell. */
  confirm(receipt: Receipt): void {
    const debt = this.#debts.get(keyId(receipt.check))
    if (debt?.doubtful.delete(receipt)) this.#keep(debt, [receipt])
  }

  /**
   * Cancels a doubtful debt, since the store has taken the units. Returns false when the debt was
   * paid, or counts no more.
   */
  cancelDoubtful(receipt: Receipt): boolean {
    const { check } = receipt
    const debt = this.#debts.get(keyId(check))
    if (!debt?.doubtful.delete(receipt)) return false
    return this.#cancel(check, check.cost) > 0
  }

  /**
   * Cancels the debt of units that were refunded. The rest of the receipt, if any, becomes a
   * certain debt.
   */
  cancel(receipt: Receipt, units: number): void {
    const debt = this.#debts.get(keyId(receipt.check))
    if (debt?.doubtful.delete(receipt)) this.#keep(debt, [receipt])
    if (this.#batches.get(receipt)?.isOwed) this.#cancel(receipt.check, units)
  }

  /** Takes out the certain debt of one key. */
  take(check: Check): Due | undefined {
    const id = keyId(check)
    const debt = this.#debts.get(id)
    if (!debt) return undefined
    let doubtful = 0
    for (const receipt of debt.doubtful) doubtful += receipt.check.cost
    return this.#due(id, debt, doubtful)
  }

  /**
   * Takes out the debts of the first `count` keys, the doubtful ones too: the store answers again,
   * and has not answered those.
   */
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
    // Each payment stands for the units taken before it.
    debt.receipts = []
    debt.batch.isOwed = false
    debt.batch = { isOwed: true }
    if (debt.units.total(nowMs) === 0) this.#end(id, debt)
    return units === 0 ? undefined : { check, local, units, receipts }
  }

  /** Adds a certain debt. The oldest receipts are dropped: most of their requests have ended. */
  #keep({ receipts: kept, batch }: Debt, receipts: readonly Receipt[]): void {
    for (const receipt of receipts) this.#batches.set(receipt, batch)
    kept.push(...receipts)
    if (kept.length > maxReceipts) kept.splice(0, kept.length - maxReceipts)
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
    if (this.#debts.size > maxDebts) {
      for (const [oldest, forgotten] of this.#debts) {
        this.#end(oldest, forgotten)
        break
      }
    }
    return debt
  }
}
