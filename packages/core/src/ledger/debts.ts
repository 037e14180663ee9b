import { algorithmOf } from '../algorithms/table.ts'
import type { ChangeAtStore, Check, Receipt } from '../model/check.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { Ledger } from './ledger.ts'
import { LocalUnits } from './local-units.ts'
import { type OwedUnits, owedUnits } from './owed-units.ts'

/** Units that this process admitted, and that the store has not counted. */
interface Loan {
  readonly check: Check
  /** The same check as this process decided it. */
  readonly local: Check
  readonly units: number
}

export interface Due extends Loan {
  readonly part: DebtPart
}

/** The units of a debt that the store is told of together. */
class DebtPart extends LocalUnits {
  /** The debt that the units are a part of now. */
  debt: Debt

  constructor(debt: Debt) {
    super()
    this.debt = debt
  }

  protected override free(units: number): void {
    this.debt.take(units)
  }
}

class Debt {
  /** The check with the largest limit of the requests. */
  check: Check
  local: Check
  /** Receipts of units that the store may have taken too: its answer is awaited. */
  readonly doubtful: Set<Receipt> = new Set()
  /** The other units. */
  part: DebtPart = new DebtPart(this)
  #units: OwedUnits | undefined = undefined

  constructor(check: Check) {
    this.check = check
    this.local = check
  }

  get units(): number {
    return this.#units?.total(monotonicMs()) ?? 0
  }

  add({ check, local, units }: Loan): void {
    const nowMs = monotonicMs()
    // With a smaller limit, the store or the local memory would hold less than was admitted under
    // the larger one.
    if (!this.#units || check.limit > this.check.limit) {
      this.check = check
      this.local = local
      this.#units ??= owedUnits(check, local)
      this.#units.resize?.(check, local, nowMs)
    }
    this.#units.add(units, nowMs)
  }

  /** Takes units away; returns how many there were. */
  take(units: number): number {
    return this.#units?.take(units, monotonicMs()) ?? 0
  }

  /** Takes out the part that is told now. Later units are another part. */
  takePart(): DebtPart {
    const { part } = this
    part.isTold = true
    this.part = new DebtPart(this)
    return part
  }

  /** Takes a part back that the store did not take. Returns the units that came back meanwhile. */
  takeBack(part: DebtPart): number {
    if (this.#units) return part.joinTo(this.part)
    part.debt = this
    this.part = part
    return part.reopen()
  }
}

/**
 * Number of keys with debts, as many as a memory store holds. The oldest debts are dropped first,
 * and the store never counts them.
 */
const maxDebts = 100_000

/** Units that the store has not counted, by policy and key. */
export class Debts {
  readonly #debts = new Ledger<Debt>({ bound: maxDebts, open: (check) => new Debt(check) })
  /** The units that each receipt belongs to, unless it is doubtful. */
  readonly #parts = new WeakMap<Receipt, LocalUnits>()

  get size(): number {
    return this.#debts.size
  }

  /**
   * Adds a debt. Leases end by themselves, and are no debt.
   * @param isDoubtful true when the store was asked, and has not answered yet
   */
  owe(loan: Loan, receipt: Receipt | undefined, isDoubtful: boolean): void {
    // A penalty takes nothing from admitted requests.
    if (loan.units === 0 || algorithmOf(loan.check.policy).counts !== 'units') return
    const debt = this.#debts.of(loan.check)
    debt.add(loan)
    if (receipt && isDoubtful) debt.doubtful.add(receipt)
    else if (receipt) this.#parts.set(receipt, debt.part)
  }

  /** Adds a debt again that the store did not take. */
  oweAgain(due: Due): void {
    const debt = this.#debts.of(due.check)
    debt.add({ ...due, units: Math.max(0, due.units - debt.takeBack(due.part)) })
    this.#endIfPaid(debt)
  }

  /** Makes a doubtful debt certain: the store did not take the units, or will never tell. */
  confirm(receipt: Receipt): void {
    const debt = this.#debts.find(receipt.check)
    if (debt?.doubtful.delete(receipt)) this.#parts.set(receipt, debt.part)
  }

  /**
   * Cancels a doubtful debt, since the store has taken the units. Returns false when the debt was
   * paid, or counts no more.
   */
  cancelDoubtful(receipt: Receipt): boolean {
    const debt = this.#debts.find(receipt.check)
    if (!debt?.doubtful.delete(receipt)) return false
    const cancelled = debt.take(receipt.check.cost)
    this.#endIfPaid(debt)
    return cancelled > 0
  }

  /** Gives back units of a receipt: the debt of them, or those that the store was told of. */
  giveBack(receipt: Receipt, units: number, changeAtStore: ChangeAtStore): void {
    this.confirm(receipt)
    if (units > 0) void this.#parts.get(receipt)?.giveBack({ cost: units }, changeAtStore)
    const debt = this.#debts.find(receipt.check)
    if (debt) this.#endIfPaid(debt)
  }

  /** Tells whether the store counts the units of a receipt, as a part of what it was told. */
  isPaid(receipt: Receipt): boolean {
    return this.#parts.get(receipt)?.recorded !== undefined
  }

  /** Takes out the certain debt of one key. */
  take(check: Check): Due | undefined {
    const debt = this.#debts.find(check)
    if (!debt) return undefined
    let doubtful = 0
    for (const receipt of debt.doubtful) doubtful += receipt.check.cost
    return this.#takeOut(debt, doubtful)
  }

  /**
   * Takes out the debts of the first `count` keys, the doubtful ones too: the store answers again,
   * and has not answered those.
   */
  takeSome(count: number): readonly Due[] {
    const taken: Due[] = []
    for (const debt of this.#debts.values()) {
      if (taken.length >= count) break
      for (const receipt of debt.doubtful) this.confirm(receipt)
      const due = this.#takeOut(debt, 0)
      if (due) taken.push(due)
    }
    return taken
  }

  forget(check: Check): void {
    this.#debts.delete(check)
  }

  #takeOut(debt: Debt, doubtful: number): Due | undefined {
    const { check, local } = debt
    const units = debt.take(Math.max(0, debt.units - doubtful))
    const due = units === 0 ? undefined : { check, local, units, part: debt.takePart() }
    this.#endIfPaid(debt)
    return due
  }

  #endIfPaid(debt: Debt): void {
    if (debt.units === 0 && this.#debts.find(debt.check) === debt) this.#debts.delete(debt.check)
  }
}
