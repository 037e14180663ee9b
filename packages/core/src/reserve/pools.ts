import { stateKey } from '../engine/working-set.ts'
import { momentNow } from '../ledger/holding.ts'
import type { Check } from '../model/check.ts'
import type { Caller } from '../resilience/caller.ts'
import { Alarm } from '../waiting/timers.ts'
import { Pool } from './pool.ts'
import { CountedUnits } from './units.ts'

/** The units of one policy and key that a reservation spends. */
export type Account = Pool | CountedUnits

/** The units that the work of one limiter has reserved. */
export class Pools {
  /** Nothing is reserved any more. */
  isClosed = false
  readonly #caller: Caller
  /** By what is counted, and by the limit: a unit is spent only under its own. */
  readonly #pools = new Map<string, Pool>()
  readonly #counted = new Set<CountedUnits>()
  readonly #alarm = new Alarm(() => this.#sweep())

  constructor(caller: Caller) {
    this.#caller = caller
  }

  of(check: Check): Account {
    const { policy, limit } = check
    // Without grants there is nothing that reservations could share.
    if (policy.counting === policy.algorithm) return new CountedUnits(this.#caller, this.#counted)
    const name = `${limit} ${stateKey(check)}`
    const known = this.#pools.get(name)
    if (known) return known
    const pool = new Pool(check, this.#caller)
    this.#pools.set(name, pool)
    this.#alarm.within(pool.lookMs)
    return pool
  }

  /** Gives up all units, and resolves when the store knows it or has not answered in time. */
  close(): Promise<unknown> | undefined {
    this.isClosed = true
    this.#alarm.stop()
    const all = [...this.#pools.values(), ...this.#counted]
    this.#pools.clear()
    return all.length === 0 ? undefined : Promise.all(all.map((account) => account.close()))
  }

  #sweep(): void {
    const now = momentNow()
    let lookMs = Number.POSITIVE_INFINITY
    for (const [name, pool] of this.#pools) {
      if (pool.sweep(now)) lookMs = Math.min(lookMs, pool.lookMs)
      else this.#pools.delete(name)
    }
    if (this.#pools.size > 0) this.#alarm.within(lookMs)
  }
}
