import { momentNow } from '../ledger/holding.ts'
import type { Check } from '../model/check.ts'
import type { Caller } from '../resilience/pending-ask.ts'
import type { SharedStore } from '../resilience/shared-store.ts'
import { Alarm } from '../waiting/timers.ts'
import { Pool } from './pool.ts'

/** Parts of the life of a grant after which the process looks whether it must be renewed. */
const looksPerLife = 8

/** The pools of this process at one store, by policy and key. */
class Pools {
  readonly #shared: SharedStore
  readonly #pools = new Map<string, { readonly pool: Pool; readonly check: Check }>()
  readonly #alarm = new Alarm(() => this.#sweep())

  constructor(shared: SharedStore) {
    this.#shared = shared
  }

  of(check: Check, caller: Caller): Pool {
    const { policy, key } = check
    const name = `${policy.id} ${key}`
    const known = this.#pools.get(name)
    if (known) return known.pool
    const pool = new Pool(check, caller, () => this.#shared.isAway)
    this.#pools.set(name, { pool, check })
    this.#time()
    return pool
  }

  /** Gives up all units, and resolves when the store knows it or has not answered in time. */
  close(): Promise<unknown> | undefined {
    if (this.#pools.size === 0) return undefined
    return Promise.all([...this.#pools.values()].map(({ pool }) => pool.close()))
  }

  #time(): void {
    if (this.#pools.size === 0) return
    let lifeMs = Number.POSITIVE_INFINITY
    for (const { check } of this.#pools.values()) lifeMs = Math.min(lifeMs, check.policy.reserveMs)
    this.#alarm.within(Math.max(1, lifeMs / looksPerLife))
  }

  #sweep(): void {
    const now = momentNow()
    for (const [name, { pool }] of this.#pools) if (!pool.sweep(now)) this.#pools.delete(name)
    this.#time()
  }
}

const all = new WeakMap<SharedStore, Pools>()

/** Returns the pools of a store. All limiters of the store share them. */
export function poolsOf(shared: SharedStore): Pools {
  const known = all.get(shared) ?? new Pools(shared)
  all.set(shared, known)
  return known
}
