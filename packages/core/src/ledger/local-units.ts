import {
  type ChangeAtStore,
  type GrantCheck,
  giveBack,
  type Held,
  type Home,
  type Receipt,
} from '../model/check.ts'
import type { Decide } from '../model/decision.ts'
import type { Granted, Store } from '../model/store.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'

/** A limiter's access to its store. */
export interface StoreWay {
  /** `instances`: number of processes that share the limits, if the user has set it. */
  readonly limiter: { readonly store: Store; readonly instances: number | undefined }
  /** Decides checks; in this process while the store is unavailable. */
  readonly decide: Decide
  readonly change: ChangeAtStore
  /**
   * Returns units of closed grants, and takes a grant.
   * @param isReturning whether units come back, which ends the cached denials of the key
   */
  grant(check: GrantCheck, isReturning: boolean): MaybePromise<readonly Granted[]>
}

/** The account of units that were not sent to the store. */
interface Account {
  /** Removes units that came back. */
  remove(units: number): unknown
}

/** Units of one key that were admitted here, and that are reported to the store together. */
export class LocalUnits implements Home {
  /** True once they were sent to the store: their number is final. */
  isSent = false
  /** Units that came back between the report to the store and its answer. */
  #late = 0
  /** The receipt for the units: from the store, or from local memory in its place. */
  #recorded: Receipt | undefined
  #next: LocalUnits | undefined = undefined
  readonly #account: Account | undefined

  /** @param recorded the receipt, if the store has counted them already */
  constructor(account?: Account, recorded?: Receipt) {
    this.#account = account
    this.#recorded = recorded
  }

  /** True if units that come back are no longer free here. */
  protected get isFinal(): boolean {
    return this.isSent
  }

  protected free(units: number): void {
    this.#account?.remove(units)
  }

  /** Gives units back now, or after the store's answer if it is pending. */
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

  /** Records the store's answer, and gives back the units that waited for it. */
  settle(recorded: Receipt | undefined, changeAtStore: ChangeAtStore): void {
    this.#recorded = recorded
    if (recorded && this.#late > 0) void giveBack(recorded, this.#late, changeAtStore)
  }

  /** Merges into other units, after a failed report. Returns the units that came back meanwhile. */
  joinTo(others: LocalUnits): number {
    this.#next = others
    return this.#late
  }

  /** The units into which these were merged: after several failures, the end of a chain. */
  #whole(): LocalUnits {
    let whole: LocalUnits = this
    while (whole.#next) whole = whole.#next
    if (whole !== this) this.#next = whole
    return whole
  }
}
