import { algorithmOf } from '../algorithms/table.ts'
import type { ChangeAtStore, Check, Receipt } from '../model/check.ts'
import { monotonicMs } from '../waiting/timers.ts'
import { Ledger } from './ledger.ts'
import { LocalUnits } from './local-units.ts'

/** Units that this process has admitted and the store has not counted. */
interface Loan {
  readonly check: Check
  /** The check as this process decided it: with its share of the limit. */
  readonly local: Check
  readonly units: number
}

/** A part of a debt that is being reported to the store. */
export interface Due extends Loan {
  readonly part: LocalUnits
}

class Debt {
  /** The check with the largest limit of the requests. */
  check: Check
  local: Check
  /** Receipts of units that the store may have counted too: it has not answered yet. */
  readonly doubtful: Set<Receipt> = new Set()
  /** The other units. */
  part: LocalUnits = new LocalUnits(this)
  /** The level of one unit: in units · ms for a bucket, which drains. */
  readonly #unit: number
  #level = 0
  #levelAtMs = 0
  #addedAtMs = 0

  constructor(check: Check) {
    this.check = check
    this.local = check
    const { policy } = check
    this.#unit = algorithmOf(policy).capacityLevel ? policy.windowMs : 1
  }

  /** Units that may still count. Rounded up: over-counting is safe. */
  get units(): number {
    return Math.ceil(this.#levelAt(monotonicMs()) / this.#unit)
  }

  add({ check, local, units }: Loan): void {
    const nowMs = monotonicMs()
    const level = this.#levelAt(nowMs)
    // Under a smaller limit, the store or the local memory would keep less than was admitted.
    if (level === 0 || check.limit > this.check.limit) {
      this.check = check
      this.local = local
    }
    const capacityLevel = algorithmOf(check.policy).capacityLevel?.(this.check)
    const full = Math.max(level, capacityLevel ?? Number.MAX_SAFE_INTEGER)
    this.#level = Math.min(level + units * this.#unit, full)
    this.#levelAtMs = nowMs
    this.#addedAtMs = nowMs
  }

  /** Removes units. Returns how many there were. */
  remove(units: number): number {
    const nowMs = monotonicMs()
    const level = this.#levelAt(nowMs)
    const taken = Math.min(units, Math.ceil(level / this.#unit))
    this.#level = Math.max(0, level - taken * this.#unit)
    this.#levelAtMs = nowMs
    return taken
  }

  /**
   * A bucket drains at this process's share of the limit. Other units count until the lifetime of
   * the last one ends; the local memory knows more (`Fallback.unitsOwed`).
   */
  #levelAt(nowMs: number): number {
    const { policy, limit } = this.local
    const { capacityLevel, lifeMs } = algorithmOf(policy)
    if (capacityLevel && limit > 0) {
      return Math.max(0, this.#level - (nowMs - this.#levelAtMs) * limit)
    }
    return nowMs - this.#addedAtMs < lifeMs(policy) ? this.#level : 0
  }
}

/** As many as a memory store has keys. Older debts are dropped: the store never counts them. */
const maxDebts = 100_000

/** Units admitted while the store was unavailable, by policy and key. */
export class Debts extends Ledger<Debt> {
  /** The part that each receipt belongs to, unless it is doubtful. */
  readonly #parts = new WeakMap<Receipt, LocalUnits>()

  constructor() {
    super(maxDebts)
  }

  protected override open(check: Check): Debt {
    return new Debt(check)
  }

  /**
   * Adds a debt. Leases are no debt, since they expire.
   * @param isDoubtful true if the store was called and has not answered yet
   */
  owe(loan: Loan, receipt: Receipt | undefined, isDoubtful: boolean): void {
    // Penalties take nothing from admitted requests.
    if (loan.units === 0 || algorithmOf(loan.check.policy).counts !== 'units') return
    const debt = this.of(loan.check)
    debt.add(loan)
    if (receipt && isDoubtful) debt.doubtful.add(receipt)
    else if (receipt) this.#parts.set(receipt, debt.part)
  }

  /** Restores a debt that the store did not take, without the units returned meanwhile. */
  oweAgain(due: Due): void {
    const debt = this.of(due.check)
    const late = due.part.joinTo(debt.part)
    debt.add({ ...due, units: Math.max(0, due.units - late) })
    this.#dropIfPaid(debt)
  }

  /** Makes a doubtful debt certain: the store has not counted it, or will never answer. */
  confirm(receipt: Receipt): void {
    const debt = this.find(receipt.check)
    if (debt?.doubtful.delete(receipt)) this.#parts.set(receipt, debt.part)
  }

  /**
   * Cancels a doubtful debt that the store has counted. Returns false if the debt was paid, or no
   * longer counts.
   * @param recorded the receipt from the store
   */
  cancelDoubtful(receipt: Receipt, recorded: Receipt): boolean {
    const debt = this.find(receipt.check)
    if (!debt?.doubtful.delete(receipt)) return false
    const isCancelled = debt.remove(receipt.check.cost) > 0
    if (isCancelled) this.#parts.set(receipt, new LocalUnits(debt, recorded))
    this.#dropIfPaid(debt)
    return isCancelled
  }

  /** Gives back units of a receipt, to the debt or to the store that has counted them. */
  giveBack(receipt: Receipt, units: number, changeAtStore: ChangeAtStore): void {
    this.confirm(receipt)
    if (units > 0) void this.#parts.get(receipt)?.giveBack({ cost: units }, changeAtStore)
    const debt = this.find(receipt.check)
    if (debt) this.#dropIfPaid(debt)
  }

  /** Takes out the certain debt of one key. */
  take(check: Check): Due | undefined {
    const debt = this.find(check)
    return debt && this.#takeDue(debt)
  }

  /** Takes out the debts of some keys. The store is back, so it never answers doubtful ones. */
  takeSome(count: number): readonly Due[] {
    const taken: Due[] = []
    for (const debt of this.values()) {
      if (taken.length >= count) break
      for (const receipt of debt.doubtful) this.confirm(receipt)
      const due = this.#takeDue(debt)
      if (due) taken.push(due)
    }
    return taken
  }

  /** Takes out the certain units. Later ones form a new part. */
  #takeDue(debt: Debt): Due | undefined {
    const { check, local, part, doubtful } = debt
    let certain = debt.units
    for (const receipt of doubtful) certain -= receipt.check.cost
    const units = debt.remove(Math.max(0, certain))
    this.#dropIfPaid(debt)
    if (units === 0) return undefined
    part.isSent = true
    debt.part = new LocalUnits(debt)
    return { check, local, units, part }
  }

  #dropIfPaid(debt: Debt): void {
    if (debt.units === 0 && this.find(debt.check) === debt) this.drop(debt.check)
  }
}
