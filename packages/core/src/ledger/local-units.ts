import {
  type ChangeAtStore,
  type Check,
  type GrantCheck,
  giveBack,
  type Held,
  type Home,
  type Receipt,
} from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Granted, Store } from '../model/store.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'

/** The way of one limiter to the store. */
export interface StoreWay {
  readonly store: Store
  /** The number of processes that share the limits, if the user has pinned it. */
  readonly instances: number | undefined
  /** Takes units without asking; in this process while the store is away. */
  charge(check: Check): MaybePromise<Decision>
  readonly change: ChangeAtStore
  /**
   * Returns units of closed grants, and takes a grant.
   * @param isReturning whether units come back, so that denials of the key are forgotten
   */
  grant(check: GrantCheck, isReturning: boolean): MaybePromise<readonly Granted[]>
}

/**
 * Units of one key that were admitted here, and that the store learns of together. A key may have
 * several of them.
 */
export abstract class LocalUnits implements Home {
  /** True once they were reported to the store: their number is final. */
  isSent = false
  /** Units that came back between telling the store and its answer. */
  #late = 0
  #recorded: Receipt | undefined
  #next: LocalUnits | undefined = undefined

  /** @param recorded the receipt, for units that the store has counted already */
  constructor(recorded?: Receipt) {
    this.#recorded = recorded
  }

  /** The receipt for the units: of the store, or of local memory in its place. */
  get recorded(): Receipt | undefined {
    return this.#whole().#recorded
  }

  /** True when units that come back do not become free here. */
  protected get isFinal(): boolean {
    return this.isSent
  }

  /** Notes that units came back before they were reported. */
  protected abstract free(units: number): void

  /** While the answer of the store is awaited, units wait for it, and come back after it. */
  giveBack({ cost }: Pick<Held, 'cost'>, changeAtStore: ChangeAtStore): MaybePromise<boolean> {
    const whole = this.#whole()
    if (whole !== this) return whole.giveBack({ cost }, changeAtStore)
    if (this.#recorded) return giveBack(this.#recorded, cost, changeAtStore)
    if (this.isFinal) {
      this.#late += cost
      return false
    }
    this.free(cost)
    return true
  }

  /** Notes where the units were recorded, if they were, and gives back what waits for that. */
  settle(recorded: Receipt | undefined, changeAtStore: ChangeAtStore): void {
    this.#recorded = recorded
    if (recorded && this.#late > 0) void giveBack(recorded, this.#late, changeAtStore)
  }

  /**
   * Continues as a part of other units, since the store could not be reached. Returns the units
   * that came back meanwhile.
   */
  joinTo(others: LocalUnits): number {
    this.#next = others
    return this.#late
  }

  /** The units that these are a part of now. There may be one for each failure of the store. */
  #whole(): LocalUnits {
    let whole: LocalUnits = this
    while (whole.#next) whole = whole.#next
    if (whole !== this) this.#next = whole
    return whole
  }
}
