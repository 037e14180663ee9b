import {
  type Check,
  giveBack,
  type Held,
  type Home,
  Receipt,
  type ResetCheck,
} from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { RegionUse, StoreRegion } from '../model/region.ts'
import type { DecidingOp, Outcome, StoreOp } from '../model/store.ts'
import { errorText, SluiceError } from '../options/errors.ts'
import { warnOnce } from '../options/warn.ts'
import { Caller } from '../resilience/caller.ts'
import { sharedStoreOf } from '../resilience/shared-store.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { centralPolicy, isDivided } from './regional-policies.ts'
import type { RegionStores } from './shares.ts'

/** Units counted by the global store. A class, so that their receipt can be copied. */
class CentralUnits implements Home {
  readonly #receipt: Receipt
  readonly #caller: Caller

  constructor(receipt: Receipt, caller: Caller) {
    this.#receipt = receipt
    this.#caller = caller
  }

  giveBack({ cost }: Held): MaybePromise<boolean> {
    return giveBack(this.#receipt, cost, this.#caller.change)
  }
}

/**
 * Decides at the global store: the pool of policies with a divided limit (with grants for hot
 * keys), and policies with reach `global`. It has a deadline and a circuit breaker.
 */
export class Central {
  readonly stores: RegionStores
  readonly #caller: Caller
  readonly #policies = new WeakMap<Policy, Policy>()
  readonly #decideByGrants: Caller['decide']
  #fromShare = 0
  #borrowed = 0

  constructor(stores: RegionStores, deadlineMs: number) {
    this.stores = stores
    const { global: store } = stores
    const { region } = stores.shares
    const onFailure = (_op: StoreOp, error: unknown) =>
      warnOnce(
        `the global store of region '${region}' failed; the region keeps its shares and its grants: ${errorText(error)}`,
        `global store of ${region}`,
      )
    const rules = { failureMode: 'closed', instances: undefined } as const
    this.#caller = new Caller({ store, deadlineMs, onFailure, ...rules }, sharedStoreOf(store))
    this.#decideByGrants = this.#caller.shared.grants.decider(this.#caller)(this.#caller.decide)
  }

  get isAway(): boolean {
    return this.#caller.shared.outage.isUnderWay
  }

  get grants(): ReturnType<StoreRegion['grants']> {
    const { counters, hotKeys } = this.#caller.shared.grants
    return { ...counters, hotKeys }
  }

  /** Counts the units of an allowed request. */
  count(checks: readonly Check[], borrowed: readonly Check[]): void {
    for (const check of checks) {
      if (borrowed.includes(check)) this.#borrowed += check.cost
      else if (isDivided(check.policy)) this.#fromShare += check.cost
    }
  }

  /** Returns the usage of this process. */
  use(): RegionUse {
    const { taken, spent, returned, lapsed } = this.grants
    const held = Math.max(0, taken - spent - returned - lapsed)
    const { own: share } = this.stores.shares
    return { share, fromShare: this.#fromShare, borrowed: this.#borrowed, held }
  }

  /** Returns the check for the global store: against the pool, if the limit is divided. */
  #checkOf(check: Check): Check {
    const policy = this.#policies.get(check.policy) ?? centralPolicy(check.policy)
    this.#policies.set(check.policy, policy)
    if (policy.reach === 'global') return { ...check, policy }
    return { ...check, policy, limit: this.stores.shares.pool(check.limit) }
  }

  /** Returns no outcomes if the global store does not answer, except for `charge`. */
  async decide(op: DecidingOp, checks: readonly Check[]): Promise<readonly Outcome[]> {
    const central = checks.map((check) => this.#checkOf(check))
    const { outcomes } = await this.#decideByGrants(op, central)
    return outcomes.flatMap(({ receipt, ...outcome }, index) => {
      const check = checks[index]
      if (!check) return []
      const { policy, limit } = check
      const home = receipt && new CentralUnits(receipt, this.#caller)
      const own = receipt && new Receipt(check, receipt.at, undefined, home)
      return { ...outcome, policy, limit, receipt: own }
    })
  }

  /** Rejects if the global store fails or is unavailable. */
  async reset(checks: readonly ResetCheck[]): Promise<readonly boolean[]> {
    // The limiter's grants are those of its share.
    const central = checks.map(({ closed: _, ...check }) => this.#checkOf(check))
    const { changes, grants } = this.#caller.shared
    try {
      const change = { op: 'reset', checks: grants.forget(central) } as const
      return await changes.overwrite(change, this.#caller.limiter)
    } catch (cause) {
      // The local store works, and continues.
      const message = `nothing was reset in this region, since the global store failed: ${errorText(cause)}`
      throw new SluiceError('SLUICE_STORE_CHECK', message, { cause })
    }
  }

  close(): Promise<void> {
    this.#caller.denials?.close()
    return this.#caller.shared.grants.close(this.#caller.limiter.store)
  }
}
