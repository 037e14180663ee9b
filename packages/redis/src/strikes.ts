import type { Check } from '@sluice/core'
import { LRUCache } from 'lru-cache'
import type { Row } from './row.ts'

interface Collected {
  readonly check: Check
  count: number
}

/** Has strikes counted at the store. */
export type Charge = (row: Row) => void

/** As many keys as denials are remembered of. */
const mostKeys = 10_000

/**
 * Denials that were answered without the store, and are strikes for a penalty: collected by key, and told the store of in bulk. So a flood that
 * costs Redis nothing leads to a block all the same.
 */
export class Strikes {
  readonly #ttlMs: number
  readonly #charge: Charge
  readonly #collected = new Map<string, Collected>()
  /** How many more lead to a block: what the store last said, less what was counted since. */
  readonly #left = new LRUCache<string, number>({ max: mostKeys })
  #timer: NodeJS.Timeout | undefined
  #dueAt = 0

  /** @param ttlMs how late the store is told at most; a tenth of the time in which strikes are counted, where that is shorter */
  constructor(ttlMs: number, charge: Charge) {
    this.#ttlMs = ttlMs
    this.#charge = charge
  }

  /** To be told how many more lead to a block, as the store says. */
  learn(key: string, left: number): void {
    this.#left.set(key, left - (this.#collected.get(key)?.count ?? 0))
  }

  /**
   * Whether the next strike leads to a block, as far as is known. Then the request that causes it asks the store, which knows how long the block
   * lasts; those that come before the answer do not.
   */
  isNextLast(key: string, check: Check): boolean {
    if (this.#leftOf(key, check) > 1) return false
    this.#left.delete(key)
    return true
  }

  add(key: string, check: Check): void {
    this.#left.set(key, this.#leftOf(key, check) - 1)
    const collected = this.#collected.get(key) ?? { check, count: 0 }
    collected.count += 1
    this.#collected.set(key, collected)
    if (this.#collected.size >= mostKeys) this.settle()
    else this.#wait(Math.min(this.#ttlMs, Math.ceil(check.policy.windowMs / 10)))
  }

  forget(key: string): void {
    this.#collected.delete(key)
    this.#left.delete(key)
  }

  /** Tells the store of what was collected of some keys, before it is asked about them. */
  tell(keys: readonly string[]): void {
    if (this.#collected.size === 0) return
    for (const key of keys) {
      const collected = this.#collected.get(key)
      if (!collected) continue
      this.#collected.delete(key)
      this.#tell(key, collected)
    }
  }

  /** Tells the store of all that was collected. */
  settle(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const collected = [...this.#collected]
    this.#collected.clear()
    for (const [key, strikes] of collected) this.#tell(key, strikes)
  }

  #leftOf(key: string, check: Check): number {
    return this.#left.get(key) ?? check.limit
  }

  #tell(key: string, { check, count }: Collected): void {
    this.#charge({ op: 'charge', checks: [{ ...check, cost: count }], keys: [key] })
  }

  /** Nobody is kept waiting by the timer, the end of the process neither. */
  #wait(delayMs: number): void {
    const dueAt = performance.now() + delayMs
    if (this.#timer !== undefined && this.#dueAt <= dueAt) return
    clearTimeout(this.#timer)
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => this.settle(), delayMs)
    this.#timer.unref()
  }
}
