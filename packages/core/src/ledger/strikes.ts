import type { Check } from '../model/check.ts'
import { Ledger } from './ledger.ts'

interface Tally {
  readonly check: Check
  /** Strikes that the store has not counted yet. */
  untold: number
  /** Strikes that are left before a block: as the store last said, less those counted since. */
  left: number
}

const maxTallies = 10_000

/**
 * Counts denials that were answered from memory and are strikes for a penalty. They are sent to the
 * store in bulk. So a flood of local denials leads to a block too.
 */
export class Strikes {
  readonly #ttlMs: number
  readonly #tallies: Ledger<Tally>

  /**
   * @param ttlMs the longest delay until the store is told; a tenth of the penalty's window, where
   * that is shorter
   * @param charge has the store count the strikes of a check; its cost is their number
   */
  constructor(ttlMs: number, charge: (check: Check) => Promise<void>) {
    this.#ttlMs = ttlMs
    this.#tallies = new Ledger<Tally>({
      bound: maxTallies,
      open: (check) => ({ check, untold: 0, left: check.limit }),
      tell(tally) {
        const cost = tally.untold
        tally.untold = 0
        if (cost > 0) void charge({ ...tally.check, cost })
      },
    })
  }

  /** Notes how many strikes the store has left for a key before it blocks it. */
  learn(check: Check, left: number): void {
    const tally = this.#tallies.of(check)
    tally.left = left - tally.untold
  }

  /**
   * Tells whether the next strike leads to a block, as far as is known. The request that causes it
   * asks the store, which knows how long the block lasts. Requests that come before the answer are
   * answered from memory.
   */
  isNextLast(check: Check): boolean {
    const tally = this.#tallies.of(check)
    if (tally.left > 1) return false
    tally.left = check.limit
    return true
  }

  add(check: Check): void {
    const tally = this.#tallies.of(check)
    tally.left -= 1
    tally.untold += 1
    const delayMs = Math.min(this.#ttlMs, Math.ceil(check.policy.windowMs / 10))
    this.#tallies.tellWithin(delayMs, tally)
  }

  forget(check: Check): void {
    this.#tallies.delete(check)
  }

  /** Tells the store of the strikes of some keys, before it is asked about these keys. */
  tell(checks: readonly Check[]): void {
    if (!this.#tallies.hasDue) return
    for (const check of checks) {
      const tally = this.#tallies.find(check)
      if (tally) this.#tallies.tell(tally)
    }
  }

  tellAll(): void {
    this.#tallies.tellDue()
  }
}
