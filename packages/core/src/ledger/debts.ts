import { algorithmOf } from '../algorithms/table.ts'
import type { ChangeAtStore, Check, Receipt } from '../model/check.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { Ledger } from './ledger.ts'
import { LocalUnits } from './local-units.ts'

/** Units that this process admitted, and that the store has not counted. */
interface Loan {
  readonly check: Check
  /** The same check as this process decided it. */
  readonly local: Check
  readonly units: number
}

/** The part of a debt that is reported to the store now. */
export interface Due extends Loan {
  readonly part: DebtPart
}

class DebtPart extends LocalUnits {
  readonly #debt: Debt

  constructor(debt: Debt) {
    super()
    this.#debt = debt
  }

  protected override free(units: number): void {
    this.#debt.take(units)
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

  /** Takes all units out but the doubtful ones. Later units are another part. */
  takeDue(): Due | undefined {
    const { check, local, part } = this
    let units = this.units
    for (const receipt of this.doubtful) units -= receipt.check.cost
    units = this.take(Math.max(0, units))
    if (units === 0) return undefined
    part.isSent = true
    this.part = new DebtPart(this)
    return { check, local, units, part }
  }

  /** Takes units back that the store did not take, less the units that came back meanwhile. */
  takeBack(due: Due): void {
    const late = due.part.joinTo(this.part)
    this.add({ ...due, units: Math.max(0, due.units - late) })
  }
}

/**
 * Number of keys with debts, as many as a memory store holds. The oldest debts are dropped first,
 * and the store never counts them.
 */
const maxDebts = 100_000

/** Units that were admitted while the store was away, by policy and key. */
export class Debts extends Ledger<Debt> {
  /** The units that each receipt belongs to, unless it is doubtful. */
  readonly #parts = new WeakMap<Receipt, LocalUnits>()

  constructor() {
    super(maxDebts)
  }

  protected override open(check: Check): Debt {
    return new Debt(check)
  }

  /**
   * Adds a debt. Leases end by themselves, and are no debt.
   * @param isDoubtful true when the store was asked, and has not answered yet
   */
  owe(loan: Loan, receipt: Receipt | undefined, isDoubtful: boolean): void {
    // A penalty takes nothing from admitted requests.
    if (loan.units === 0 || algorithmOf(loan.check.policy).counts !== 'units') return
    const debt = this.of(loan.check)
    debt.add(loan)
    if (receipt && isDoubtful) debt.doubtful.add(receipt)
    else if (receipt) this.#parts.set(receipt, debt.part)
  }

  /** Adds a debt again that the store did not take. */
  oweAgain(due: Due): void {
    const debt = this.of(due.check)
    debt.takeBack(due)
    this.#dropIfPaid(debt)
  }

  /** Makes a doubtful debt certain: the store did not take the units, or will never tell. */
  confirm(receipt: Receipt): void {
    const debt = this.find(receipt.check)
    if (debt?.doubtful.delete(receipt)) this.#parts.set(receipt, debt.part)
  }

  /**
   * Cancels a doubtful debt, since the store has taken the units. Returns false when the debt was
   * paid, or counts no more.
   */
  cancelDoubtful(receipt: Receipt): boolean {
    const debt = this.find(receipt.check)
    if (!debt?.doubtful.delete(receipt)) return false
    const cancelled = debt.take(receipt.check.cost)
    this.#dropIfPaid(debt)
    return cancelled > 0
  }

  /** Gives back units of a receipt: the debt of them, or those that were reported to the store. */
  giveBack(receipt: Receipt, units: number, changeAtStore: ChangeAtStore): void {
    this.confirm(receipt)
    if (units > 0) void this.#parts.get(receipt)?.giveBack({ cost: units }, changeAtStore)
    const debt = this.find(receipt.check)
    if (debt) this.#dropIfPaid(debt)
  }

  /** Tells whether the store counts the units of a receipt, among those reported to it. */
  isPaid(receipt: Receipt): boolean {
    return this.#parts.get(receipt)?.recorded !== undefined
  }

  /** Takes out the certain debt of one key. */
  take(check: Check): Due | undefined {
    const debt = this.find(check)
    return debt && this.#takeDue(debt)
  }

  /**
   * Takes out the debts of the first `count` keys, the doubtful ones too: the store answers again,
   * and has not answered those.
   */
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

  #takeDue(debt: Debt): Due | undefined {
    const due = debt.takeDue()
    this.#dropIfPaid(debt)
    return due
  }

  #dropIfPaid(debt: Debt): void {
    if (debt.units === 0 && this.find(debt.check) === debt) this.drop(debt.check)
  }
}

/** Units that may still count, by a clock that never steps: over-counting is the safe side. */
interface OwedUnits {
  add(units: number, nowMs: number): void
  total(nowMs: number): number
  /** Takes units away, the oldest first; returns how many there were. */
  take(units: number, nowMs: number): number
  /** Continues with the limits of other checks. */
  resize?(check: Check, local: Check, nowMs: number): void
}

/** @param local the check as this process decides it: its bucket drains by this limit */
function owedUnits({ policy }: Check, local: Check): OwedUnits {
  const algorithm = algorithmOf(policy)
  const isDraining = algorithm.capacityLevel !== undefined && local.limit > 0
  return isDraining ? new DrainingUnits(policy.windowMs) : new RecentUnits(algorithm.lifeMs(policy))
}

interface Slice {
  readonly startMs: number
  units: number
}

const slicesOfALife = 8

/**
 * Units with their times. A time is exact to an eighth of the units' life. Units that count no more
 * are dropped.
 */
class RecentUnits implements OwedUnits {
  readonly #lifeMs: number
  readonly #slices: Slice[] = []

  constructor(lifeMs: number) {
    this.#lifeMs = lifeMs
  }

  add(units: number, nowMs: number): void {
    const last = this.#slices.at(-1)
    if (last && nowMs - last.startMs < this.#lifeMs / slicesOfALife) last.units += units
    else this.#slices.push({ startMs: nowMs, units })
  }

  total(nowMs: number): number {
    const sliceMs = this.#lifeMs / slicesOfALife
    while (this.#slices[0] && this.#slices[0].startMs + sliceMs + this.#lifeMs <= nowMs) {
      this.#slices.shift()
    }
    return this.#slices.reduce((sum, { units }) => sum + units, 0)
  }

  take(units: number, nowMs: number): number {
    const taken = Math.min(units, this.total(nowMs))
    let left = taken
    while (left > 0 && this.#slices[0]) {
      const [first] = this.#slices
      const some = Math.min(left, first.units)
      first.units -= some
      left -= some
      if (first.units === 0) this.#slices.shift()
    }
    return taken
  }
}

/**
 * Units in a bucket that have not drained. It has the level of the store, and drains by the share
 * of this process. Each process of a fleet has a bucket of its own, and the store has one for all.
 */
class DrainingUnits implements OwedUnits {
  readonly #windowMs: number
  /** Units · ms. */
  #capacityLevel = 0
  /** Units · ms that drain every millisecond. */
  #drain = 0
  #level = 0
  #atMs = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  resize(check: Check, local: Check, nowMs: number): void {
    this.#drainUntil(nowMs)
    this.#capacityLevel = algorithmOf(check.policy).capacityLevel?.(check) ?? 0
    this.#drain = local.limit
  }

  add(units: number, nowMs: number): void {
    this.#drainUntil(nowMs)
    const full = Math.max(this.#level, this.#capacityLevel)
    this.#level = Math.min(this.#level + units * this.#windowMs, full)
  }

  total(nowMs: number): number {
    this.#drainUntil(nowMs)
    return Math.ceil(this.#level / this.#windowMs)
  }

  take(units: number, nowMs: number): number {
    const taken = Math.min(units, this.total(nowMs))
    this.#level = Math.max(0, this.#level - taken * this.#windowMs)
    return taken
  }

  #drainUntil(nowMs: number): void {
    this.#level = Math.max(0, this.#level - (nowMs - this.#atMs) * this.#drain)
    this.#atMs = nowMs
  }
}
