import { byGrants } from '../deciders/from-ledger.ts'
import { type Check, giveBack, type Held, type Home, Receipt } from '../model/check.ts'
import type { Decide } from '../model/decide.ts'
import type { Policy } from '../model/policy.ts'
import type { StoreRegion } from '../model/region.ts'
import type { Outcome, Store } from '../model/store.ts'
import type { Caller } from '../resilience/pending-ask.ts'
import type { StoreAccess } from '../resilience/store-access.ts'
import { accessTo } from '../resilience/store-access.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { centralPolicy } from './regional-policies.ts'
import type { Shares } from './shares.ts'

/** Gives back units that the global store has counted. Never rejects. */
export async function refundCentral({ receipt, ...check }: Check): Promise<boolean> {
  return (await receipt?.home?.giveBack({ ...check, receipt }, async () => false)) ?? false
}

/** Units that the global store has counted. A class: then a copy of their receipt can be made. */
class CentralUnits implements Home {
  readonly #receipt: Receipt
  readonly #caller: Caller

  constructor(receipt: Receipt, caller: Caller) {
    this.#receipt = receipt
    this.#caller = caller
  }

  giveBack({ cost, refunded = 0 }: Held): MaybePromise<boolean> {
    const receipt = this.#receipt
    return giveBack({ ...receipt.check, cost, receipt, refunded }, this.#caller.change)
  }
}

interface CentralOptions {
  readonly store: Store
  readonly shares: Shares
  readonly deadlineMs: number
  onFailure(error: unknown): void
}

/**
 * Decides at the global store: the pool of the policies whose limit is divided, by grants for hot
 * keys, and the policies of reach `global`. It has a deadline, and a circuit breaker.
 */
export class Central {
  readonly #access: StoreAccess
  readonly #caller: Caller
  readonly #shares: Shares
  readonly #policies = new WeakMap<Policy, Policy>()
  /** Answers without outcomes if the global store does not answer, except to a `charge`. */
  readonly decide: Decide

  constructor({ store, shares, deadlineMs, onFailure }: CentralOptions) {
    const access = accessTo(store)
    const caller = access.callerOf({
      store,
      failureMode: 'closed',
      deadlineMs,
      instances: undefined,
      onFailure: (_op, error) => onFailure(error),
    })
    this.#access = access
    this.#caller = caller
    this.#shares = shares
    this.decide = byGrants(access.prefetcher, caller)(caller.ask)
  }

  /** True while the global store does not answer. */
  get isAway(): boolean {
    return this.#access.isAway
  }

  /** Units of this process' grants, and the number of their keys. */
  get grants(): ReturnType<StoreRegion['grants']> {
    const { counters, hotKeys } = this.#access.prefetcher
    return { ...counters, hotKeys }
  }

  /** Units of the pool that this process holds and has not spent. */
  get heldUnits(): number {
    const { taken, spent, returned, lapsed } = this.grants
    return Math.max(0, taken - spent - returned - lapsed)
  }

  /** The check as the global store decides it: against the pool, if the limit is divided. */
  checkOf(check: Check): Check {
    const policy = this.#policies.get(check.policy) ?? centralPolicy(check.policy)
    this.#policies.set(check.policy, policy)
    if (policy.reach === 'global') return { ...check, policy }
    // The grants of the limiter are those of its share.
    return { ...check, policy, limit: this.#shares.pool(check.limit), terms: undefined }
  }

  /** The outcome of a central check, as that of the check of the limiter. */
  outcomeOf(check: Check, { receipt, ...outcome }: Outcome): Outcome {
    const { policy, limit } = check
    const home = receipt && new CentralUnits(receipt, this.#caller)
    const own = receipt && new Receipt(check, receipt.at, undefined, home)
    return { ...outcome, policy, limit, receipt: own }
  }

  /** @throws or rejects when the global store failed or is away */
  async reset(checks: readonly Check[]): Promise<readonly Outcome[]> {
    const asked = this.#access.prefetcher.forget(checks.map((check) => this.checkOf(check)))
    return this.#caller.overwrite('reset', asked)
  }

  close(): Promise<void> {
    this.#caller.denials?.close()
    return this.#access.prefetcher.close(this.#caller.store)
  }
}
