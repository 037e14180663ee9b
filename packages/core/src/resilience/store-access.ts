import { Fallback } from '../ledger/fallback.ts'
import { Prefetcher } from '../ledger/prefetcher.ts'
import { Uncounted } from '../ledger/uncounted.ts'
import type { MemoryStore } from '../memory-store/memory-store.ts'
import type { Store } from '../model/store.ts'
import type { StoreHealth } from '../model/store-health.ts'
import { Asks } from './asks.ts'
import { Changes } from './changes.ts'
import { applyChange, denialsOf } from './denials-of-store.ts'
import { type Caller, PendingAsk } from './pending-ask.ts'
import { grantsOf, StoreMonitor } from './store-monitor.ts'

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
  readonly #changes: Changes

  constructor(memory: MemoryStore) {
    this.memory = memory
    this.#fallback = new Fallback(memory)
    this.#asks = new Asks(this.#fallback, this.monitor, () => this.#store?.telemetry?.lastFailure)
    this.#changes = new Changes(this.#asks, this.#fallback)
    this.uncounted = new Uncounted({
      isAway: () => this.isAway,
      isPaid: (receipt) => this.#fallback.isPaid(receipt),
    })
  }

  get isAway(): boolean {
    return this.#asks.outage.isUnderWay
  }

  /** The store as one limiter uses it. */
  callerOf(
    limiter: Pick<Caller, 'store' | 'failureMode' | 'deadlineMs' | 'instances' | 'onFailure'>,
  ): Caller {
    const { store } = limiter
    const caller: Caller = {
      ...limiter,
      denials: denialsOf(store),
      answerHandler: this.#asks,
      ask: (op, checks, request) => this.#asks.ask(new PendingAsk(op, checks, caller, request)),
      charge: (check) => caller.ask('charge', [check]),
      applyGrant: (checks) => applyChange(store, 'grant', checks),
      change: (op, held) => this.#changes.change(op, held, caller),
      overwrite: (op, checks) => this.#changes.overwrite(op, checks, caller),
    }
    return caller
  }

  listenTo(store: Store): void {
    if (this.#heard.has(store)) return
    this.#heard.add(store)
    this.#store = store
    store.telemetry?.observe?.((event) => this.monitor.tell(event))
    store.telemetry?.observeReturn?.(() => this.#asks.outage.retryNow())
  }

  health(store: Store): StoreHealth {
    return {
      ...this.monitor.healthOf(store),
      breaker: this.#asks.outage.breakerState,
      isAway: this.isAway,
      keysOwed: this.#fallback.debts.size,
      ...this.uncounted.reading(store.fleet?.instances),
      ...grantsOf(this.prefetcher, store),
    }
  }
}
