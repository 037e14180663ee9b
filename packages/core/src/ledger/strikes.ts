import type { Check } from '../model/check.ts'
import { Ledger } from './ledger.ts'

interface Tally {
  readonly check: Check
  /** Strikes that the store has not counted yet. */
  unsent: number
  /** Strikes that are left before a block: as the store last said, less those counted since. */
  left: number
}

const maxTallies = 10_000

/**
 * Counts denials that were answered from memory and are strikes for a penalty. They are sent to the
 * store in bulk. So a flood of local denials leads to a block too.
 */
export class Strikes extends Ledger<Tally> {
  readonly #ttlMs: number
  readonly #charge: (check: Check) => Promise<void>

  /**
   * @param ttlMs the longest delay until the store gets them; a tenth of the penalty's window,
   * where that is shorter
   * @param charge has the store count the strikes of a check; its cost is their number
   */
  constructor(ttlMs: number, charge: (check: Check) => Promise<void>) {
    super(maxTallies)
    this.#ttlMs = ttlMs
    this.#charge = charge
  }

  protected override open(check: Check): Tally {
    return { check, unsent: 0, left: check.limit }
  }

  protected override send(tally: Tally): void {
    const cost = tally.unsent
    tally.unsent = 0
    if (cost > 0) void this.#charge({ ...tally.check, cost })
  }

  /** Notes how many strikes the store has left for a key before it blocks it. */
  learn(check: Check, left: number): void {
    const tally = this.of(check)
    tally.left = left - tally.unsent
  }

  /**
   * Tells whether the next strike leads to a block, as far as is known. The request that causes it
   * asks the store, which knows how long the block lasts. Requests that come before the answer are
   * answered from memory.
   */
  isNextLast(check: Check): boolean {
    const tally = this.of(check)
    if (tally.left > 1) return false
    tally.left = check.limit
    return true
  }

  add(check: Check): void {
    const tally = this.of(check)
    tally.left -= 1
    tally.unsent += 1
    this.flushWithin(Math.min(this.#ttlMs, Math.ceil(check.policy.windowMs / 10)), tally)
  }

  /** Tells the store of the strikes of some keys, before it is asked about these keys. */
  flushKeys(checks: readonly Check[]): void {
    if (!this.hasDue) return
    for (const check of checks) {
      const tally = this.find(check)
      if (tally) this.flush(tally)
    }
  }
}
