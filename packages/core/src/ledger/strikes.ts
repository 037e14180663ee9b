import type { Check } from '../model/check.ts'
import { Ledger } from './ledger.ts'

interface Tally {
  readonly check: Check
  /** Strikes that were not sent to the store. */
  unsent: number
  /** Strikes left before a block, from the store's last answer minus those counted since. */
  left: number
}

const maxTallies = 10_000

/**
 * Counts the denials that this process answers itself as strikes for a penalty, and sends them to
 * the store in bulk. So a flood of such denials leads to a block too.
 */
export class Strikes extends Ledger<Tally> {
  readonly #charge: (check: Check) => Promise<void>

  /** @param charge sends a check whose cost is the number of strikes */
  constructor(charge: (check: Check) => Promise<void>) {
    super(maxTallies)
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

  /** Records how many strikes a key has left before the store blocks it. */
  learn(check: Check, left: number): void {
    const tally = this.of(check)
    tally.left = left - tally.unsent
  }

  /**
   * Returns whether the next strike probably leads to a block. Then that request calls the store,
   * which knows how long the block lasts. Requests before its answer are denied from memory.
   */
  isNextLast(check: Check): boolean {
    const tally = this.of(check)
    if (tally.left > 1) return false
    tally.left = check.limit
    return true
  }

  /** Counts a strike. It is sent within `mostMs`, or a tenth of the window if that is shorter. */
  add(check: Check, mostMs: number): void {
    const tally = this.of(check)
    tally.left -= 1
    tally.unsent += 1
    this.flushWithin(Math.min(mostMs, Math.ceil(check.policy.windowMs / 10)), tally)
  }

  /** Sends the strikes of keys, before the store decides checks of these keys. */
  flushKeys(checks: readonly Check[]): void {
    if (!this.hasDue) return
    for (const check of checks) {
      const tally = this.find(check)
      if (tally) this.flush(tally)
    }
  }
}
