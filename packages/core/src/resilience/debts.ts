import type { Check } from '../check.ts'

/** Units that were admitted here while the store was away, and that it has to be told of. */
export interface Debt {
  /** What was asked, as the store knows it. */
  readonly check: Check
  /** The same as it was decided here. */
  readonly local: Check
  units: number
}

/** As many as a memory store holds keys. The oldest are forgotten first: then an outage has admitted that much too much. */
const mostDebts = 100_000

/** What the store is owed, by policy and key. */
export class Debts {
  readonly #debts = new Map<string, Debt>()

  get size(): number {
    return this.#debts.size
  }

  /** Adds to what is owed. Leases end by themselves, and are not owed. */
  owe(check: Check, local: Check, units: number = check.cost): void {
    if (units === 0 || check.policy.algorithm === 'concurrency') return
    const id = idOf(check)
    const known = this.#debts.get(id)
    if (known) {
      known.units += units
      return
    }
    this.#debts.set(id, { check, local, units })
    if (this.#debts.size <= mostDebts) return
    for (const oldest of this.#debts.keys()) {
      this.#debts.delete(oldest)
      return
    }
  }

  /** The store has these units already, or nobody has them any more. Returns how many were owed. */
  strike(check: Check, units: number = check.cost): number {
    const id = idOf(check)
    const debt = this.#debts.get(id)
    if (!debt) return 0
    const struck = Math.min(debt.units, units)
    debt.units -= struck
    if (debt.units === 0) this.#debts.delete(id)
    return struck
  }

  /** Takes out what one key owes. */
  take(check: Check): Debt | undefined {
    const id = idOf(check)
    const debt = this.#debts.get(id)
    if (debt) this.#debts.delete(id)
    return debt
  }

  /** Takes out what the first `count` keys owe. */
  takeSome(count: number): readonly Debt[] {
    const taken: Debt[] = []
    for (const [id, debt] of this.#debts) {
      if (taken.length >= count) break
      taken.push(debt)
      this.#debts.delete(id)
    }
    return taken
  }
}

function idOf({ policy, key }: Check): string {
  return `${policy.id}\0${key}`
}
