import type { Check } from '../model/check.ts'
import { startQuietTimer } from '../waiting/timers.ts'
import { CheckMap } from './check-map.ts'

/** Strikes for one key of a penalty. */
interface Tally {
  readonly check: Check
  /** Strikes that the store has not counted yet. */
  untold: number
  /** Strikes that are left before a block: as the store last said, less those counted since. */
  left: number
}

/** Has the store count the strikes of a check; its cost is their number. */
export type Charge = (check: Check) => Promise<void>

const maxTallies = 10_000
const maxUntold = 10_000

/**
 * Counts denials that were answered from memory and are strikes for a penalty. They are sent to the
 * store in bulk. So a flood of local denials leads to a block too.
 */
export class Strikes {
  readonly #ttlMs: number
  readonly #charge: Charge
  readonly #tallies = new CheckMap<Tally>(maxTallies)
  readonly #untold = new Set<Tally>()
  #stopTimer: (() => void) | undefined
  #dueAt = Number.POSITIVE_INFINITY

  /**
   * @param ttlMs the longest delay until the store is told; a tenth of the penalty's window, where
   * that is shorter
   */
  constructor(ttlMs: number, charge: Charge) {
    this.#ttlMs = ttlMs
    this.#charge = charge
  }

  /** Notes how many strikes the store has left for a key before it blocks it. */
  learn(check: Check, left: number): void {
    const tally = this.#tallyOf(check)
    tally.left = left - tally.untold
  }

  /**
   * Tells whether the next strike leads to a block, as far as is known. The request that causes it
   * asks the store, which knows how long the block lasts. Requests that come before the answer are
   * answered from memory.
   */
  isNextLast(check: Check): boolean {
    const tally = this.#tallyOf(check)
    if (tally.left > 1) return false
    tally.left = check.limit
    return true
  }

  add(check: Check, nowMs: number): void {
    const tally = this.#tallyOf(check)
    tally.left -= 1
    tally.untold += 1
    this.#untold.add(tally)
    if (this.#untold.size >= maxUntold) this.tellAll()
    else this.#tellWithin(Math.min(this.#ttlMs, Math.ceil(check.policy.windowMs / 10)), nowMs)
  }

  /** Drops the strikes of a key. */
  forget(check: Check): void {
    const tally = this.#tallies.get(check)
    if (tally) this.#untold.delete(tally)
    this.#tallies.delete(check)
  }

  /** Tells the store of the strikes of some keys, before it is asked about these keys. */
  tell(checks: readonly Check[]): void {
    if (this.#untold.size === 0) return
    for (const check of checks) {
      const tally = this.#tallies.get(check)
      if (tally && this.#untold.delete(tally)) this.#tell(tally)
    }
  }

  /** Tells the store of all strikes. */
  tellAll(): void {
    this.#stopTimer?.()
    this.#dueAt = Number.POSITIVE_INFINITY
    const untold = [...this.#untold]
    this.#untold.clear()
    for (const tally of untold) this.#tell(tally)
  }

  #tallyOf(check: Check): Tally {
    const known = this.#tallies.get(check)
    if (known) return known
    const tally = { check, untold: 0, left: check.limit }
    this.#tallies.set(check, tally)
    return tally
  }

  #tell(tally: Tally): void {
    const cost = tally.untold
    tally.untold = 0
    void this.#charge({ ...tally.check, cost })
  }

  #tellWithin(delayMs: number, nowMs: number): void {
    const dueAt = nowMs + delayMs
    if (this.#dueAt <= dueAt) return
    this.#stopTimer?.()
    this.#dueAt = dueAt
    this.#stopTimer = startQuietTimer(() => this.tellAll(), delayMs)
  }
}
