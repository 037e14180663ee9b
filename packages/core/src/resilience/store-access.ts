import { Fallback } from '../ledger/fallback.ts'
import { Prefetcher } from '../ledger/prefetcher.ts'
import { Uncounted } from '../ledger/uncounted.ts'
import { type MemoryStore, memoryStore } from '../memory-store/memory-store.ts'
import type { Store } from '../model/store.ts'
import type { StoreHealth } from '../model/store-health.ts'
import { SluiceError } from '../options/errors.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { processWide } from '../runtime/process-wide.ts'
import { Asks } from './asks.ts'
import type { Caller, CallingLimiter } from './pending-ask.ts'
import { StoreMonitor } from './store-monitor.ts'

/** All that the limiters of a store share in one process. */
export class StoreAccess {
  readonly memory: MemoryStore
  readonly monitor: StoreMonitor = new StoreMonitor()
  readonly prefetcher: Prefetcher = new Prefetcher(() => this.isAway)
  readonly uncounted: Uncounted
  readonly #heard = new WeakSet<Store>()
  /** Any of its stores: they share a connection. */
  #store: Store | undefined
  readonly #fallback: Fallback
  readonly #asks: Asks

  constructor(memory: MemoryStore) {
    this.memory = memory
    this.#fallback = new Fallback(memory)
    this.#asks = new Asks(this.#fallback, this.monitor, () => this.#store?.telemetry?.lastFailure)
    this.uncounted = new Uncounted({
      isAway: () => this.isAway,
      isPaid: (receipt) => this.#fallback.isPaid(receipt),
    })
  }

  get isAway(): boolean {
    return this.#asks.outage.isUnderWay
  }

  /** The store as one limiter uses it. */
  callerOf(limiter: CallingLimiter): Caller {
    return this.#asks.callerOf(limiter)
  }

  listenTo(store: Store): void {
    if (this.#heard.has(store)) return
    this.#heard.add(store)
    this.#store = store
    store.telemetry?.observe?.((event) => this.monitor.tell(event))
    store.telemetry?.observeReturn?.(() => this.#asks.outage.breaker.retryNow(monotonicMs()))
  }

  health({ fleet, region }: Store): StoreHealth {
    const { instances, clockSkewMs = 0 } = fleet ?? { instances: 1 }
    const { counters, hotKeys } = this.prefetcher
    // With the grants of the pool, if it is the store of a region.
    const pool = region?.grants()
    return {
      breaker: this.#asks.outage.breaker.state,
      isAway: this.isAway,
      instances,
      clockSkewMs,
      keysOwed: this.#fallback.debts.size,
      ...this.uncounted.reading(instances),
      counters: { ...this.monitor.counters },
      grants: {
        taken: counters.taken + (pool?.taken ?? 0),
        spent: counters.spent + (pool?.spent ?? 0),
        returned: counters.returned + (pool?.returned ?? 0),
        lapsed: counters.lapsed + (pool?.lapsed ?? 0),
      },
      hotKeys: hotKeys + (pool?.hotKeys ?? 0),
    }
  }
}

const accesses = processWide('@sluice/core/accesses/4', () => new WeakMap<object, StoreAccess>())

/**
 * Returns the access to a store. All limiters of a store share it, and all stores that count in the
 * same place.
 * @param fallback local memory; the first limiter that names one decides for all
 * @throws SluiceError when another fallback is in use already
 */
export function accessTo(store: Store, fallback?: MemoryStore): StoreAccess {
  const space = store.space ?? store
  const known = accesses.get(space)
  if (known && fallback && known.memory !== fallback) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      'fallback: another limiter on this store has a fallback already, or none was given; give all of them the same',
    )
  }
  const access = known ?? new StoreAccess(fallback ?? memoryStore())
  accesses.set(space, access)
  access.listenTo(store)
  return access
}
