import { Fallback } from '../ledger/fallback.ts'
import { Grants } from '../ledger/grants.ts'
import { UncountedUnits } from '../ledger/uncounted-units.ts'
import { type MemoryStore, memoryStore } from '../memory-store/memory-store.ts'
import type { Store } from '../model/store.ts'
import type { StoreHealth } from '../model/store-health.ts'
import { SluiceError } from '../options/errors.ts'
import { processWide } from '../runtime/process-wide.ts'
import { Deadlines } from '../waiting/deadlines.ts'
import { Changes } from './changes.ts'
import { OutageWatch } from './outage-watch.ts'
import { StoreMonitor } from './store-monitor.ts'

/** The state that the limiters of a store share in one process. */
export class SharedStore {
  readonly monitor: StoreMonitor = new StoreMonitor()
  readonly grants: Grants = new Grants(() => this.outage.isUnderWay)
  readonly fallback: Fallback
  readonly uncounted: UncountedUnits
  readonly outage: OutageWatch = new OutageWatch(this)
  readonly changes: Changes = new Changes(this)
  /** True once the store has answered with a promise. */
  isRemote = false
  /** Requests that have waited until their deadline. */
  readonly timedOut: WeakSet<object> = new WeakSet()
  /** By duration in ms. */
  readonly #deadlines = new Map<number, Deadlines>()
  readonly #heard = new WeakSet<Store>()
  /** Any of the stores: they share a connection. */
  #store: Store | undefined

  constructor(memory: MemoryStore) {
    this.fallback = new Fallback(memory)
    this.uncounted = new UncountedUnits(() => this.outage.isUnderWay, this.fallback.debts)
  }

  onAway(error: unknown): void {
    for (const each of this.#deadlines.values()) each.missUntil(Number.POSITIVE_INFINITY, error)
  }

  onBack(store: Store): void {
    void this.changes.payAll(store)
  }

  deadlinesOf(durationMs: number): Deadlines {
    const reason = () => this.#store?.telemetry?.lastFailure
    const deadlines = this.#deadlines.get(durationMs) ?? new Deadlines(durationMs, reason)
    this.#deadlines.set(durationMs, deadlines)
    return deadlines
  }

  listenTo(store: Store): void {
    if (this.#heard.has(store)) return
    this.#heard.add(store)
    this.#store = store
    store.telemetry?.observe?.((event) => this.monitor.tell(event))
    store.telemetry?.observeReturn?.(() => {
      // The next request is a probe.
      this.outage.retryAt = 0
    })
  }

  health({ fleet, region }: Store): StoreHealth {
    const { instances, clockSkewMs = 0 } = fleet ?? { instances: 1 }
    const { counters, hotKeys } = this.grants
    // For the store of a region.
    const pool = region?.grants()
    return {
      breaker: this.outage.state,
      isAway: this.outage.isUnderWay,
      instances,
      clockSkewMs,
      keysOwed: this.fallback.debts.size,
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

const sharedStores = processWide(
  '@sluice/core/shared-stores/5',
  () => new WeakMap<object, SharedStore>(),
)

/**
 * Returns what the limiters of all stores that count in one place share.
 * @param fallback local memory; the first limiter decides for all
 * @throws SluiceError if another fallback is already in use
 */
export function sharedStoreOf(store: Store, fallback?: MemoryStore): SharedStore {
  const space = store.space ?? store
  const known = sharedStores.get(space)
  if (known && fallback && known.fallback.memory !== fallback) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      'fallback: another limiter on this store has a different fallback, or none; use the same for all of them',
    )
  }
  const shared = known ?? new SharedStore(fallback ?? memoryStore())
  sharedStores.set(space, shared)
  shared.listenTo(store)
  return shared
}
