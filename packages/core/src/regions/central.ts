import {
  type Check,
  giveBack,
  type Held,
  type Home,
  Receipt,
  type ResetCheck,
} from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { StoreRegion } from '../model/region.ts'
import type { DecidingOp, Outcome, StoreOp } from '../model/store.ts'
import { errorText } from '../options/errors.ts'
import { warnOnce } from '../options/warn.ts'
import { Caller } from '../resilience/caller.ts'
import { sharedStoreOf } from '../resilience/shared-store.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { centralPolicy } from './regional-policies.ts'
import type { RegionStores, Shares } from './shares.ts'

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
  readonly #caller: Caller
  readonly #shares: Shares
  readonly #policies = new WeakMap<Policy, Policy>()
  readonly #decideByGrants: Caller['decide']

  constructor({ global: store, shares }: RegionStores, deadlineMs: number) {
    const { region } = shares
    const onFailure = (_op: StoreOp, error: unknown) =>
      warnOnce(
        `the global store of region '${region}' failed; the region keeps its shares and its grants: ${errorText(error)}`,
        `global store of ${region}`,
      )
    const rules = { failureMode: 'closed', instances: undefined } as const
    this.#caller = new Caller({ store, deadlineMs, onFailure, ...rules }, sharedStoreOf(store))
    this.#shares = shares
    this.#decideByGrants = this.#caller.shared.grants.decider(this.#caller)(this.#caller.decide)
  }

  get isAway(): boolean {
    return this.#caller.shared.outage.isUnderWay
  }

  get grants(): ReturnType<StoreRegion['grants']> {
    const { counters, hotKeys } = this.#caller.shared.grants
    return { ...counters, hotKeys }
  }

  /** Unspent units of the pool that this process holds. */
  get heldUnits(): number {
    const { taken, spent, returned, lapsed } = this.grants
    return Math.max(0, taken - spent - returned - lapsed)
  }

  /** Returns the check for the global store: against the pool, if the limit is divided. */
  #checkOf(check: Check): Check {
    const policy = this.#policies.get(check.policy) ?? centralPolicy(check.policy)
    this.#policies.set(check.policy, policy)
    if (policy.reach === 'global') return { ...check, policy }
    return { ...check, policy, limit: this.#shares.pool(check.limit) }
  }

  /** Answers without outcomes if the global store does not answer, except for `charge`. */
  async decide(op: DecidingOp, checks: readonly Check[]): Promise<Decision> {
    const decision = await this.#decideByGrants(
      op,
      checks.map((check) => this.#checkOf(check)),
    )
    const outcomes = decision.outcomes.map((outcome, index) => {
      const check = checks[index]
      return check ? this.#outcomeOf(check, outcome) : outcome
    })
    return { ...decision, outcomes }
  }

  #outcomeOf(check: Check, { receipt, ...outcome }: Outcome): Outcome {
    const { policy, limit } = check
    const home = receipt && new CentralUnits(receipt, this.#caller)
    const own = receipt && new Receipt(check, receipt.at, undefined, home)
    return { ...outcome, policy, limit, receipt: own }
  }

  /** @throws or rejects if the global store fails or is unavailable */
  reset(checks: readonly ResetCheck[]): Promise<readonly boolean[]> {
    // The limiter's grants are those of its share.
    const central = checks.map(({ closed: _, ...check }) => this.#checkOf(check))
    const { changes, grants } = this.#caller.shared
    return changes.overwrite({ op: 'reset', checks: grants.forget(central) }, this.#caller.limiter)
  }

  close(): Promise<void> {
    this.#caller.denials?.close()
    return this.#caller.shared.grants.close(this.#caller.limiter.store)
  }
}
