import type { Check } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { GrantCounters } from '../model/store-health.ts'
import { SpaceSaving } from '../runtime/hot-keys.ts'
import { HotKey } from './hot-key.ts'
import type { StoreWay } from './local-units.ts'

/** Number of keys that the sketch surely lists. */
const sketchSize = 1_000
/** Number of keys that this process takes grants for. */
const maxHotKeys = 10_000
/** The requests that a grant has to be worth. */
const leastRequests = 10
const secondMs = 1_000
/** Time without a request after which a policy without hot keys is forgotten. */
export const idleMs = 2_000

/** The hot keys of one policy at this process, found by a sketch. */
export class HotPolicy {
  readonly policy: Policy
  readonly caller: StoreWay
  readonly #keys = new Map<string, HotKey>()
  readonly #seen = new SpaceSaving(sketchSize)
  readonly #leastASecond: number
  readonly #counters: GrantCounters
  #seenSinceMs = Number.NEGATIVE_INFINITY

  constructor(policy: Policy, caller: StoreWay, counters: GrantCounters) {
    this.#counters = counters
    this.policy = policy
    this.caller = caller
    this.#leastASecond = Math.max(leastRequests, (leastRequests * secondMs) / policy.prefetchMs)
  }

  get keys(): Iterable<HotKey> {
    return this.#keys.values()
  }

  get size(): number {
    return this.#keys.size
  }

  /** Tells whether nothing would be lost without it: the sketch too has seen no key of late. */
  isIdle(nowMs: number): boolean {
    return this.#keys.size === 0 && nowMs - this.#seenSinceMs >= idleMs
  }

  readonly get = (key: string): HotKey | undefined => this.#keys.get(key)

  /** The size of a grant: the units of its life at the present rate. */
  unitsOfGrant(hot: HotKey, nowMs: number): number {
    const units = Math.ceil((hot.unitsASecond(nowMs) * this.policy.prefetchMs) / secondMs)
    return Math.max(leastRequests * hot.meanCost(nowMs), units)
  }

  isHot(hot: HotKey, nowMs: number): boolean {
    return hot.requestsASecond(nowMs) >= this.#leastASecond / 2
  }

  /** Tells whether grants of the key were spent so lately that the next one will be spent too. */
  isSpent(hot: HotKey, nowMs: number): boolean {
    return this.isHot(hot, nowMs) && nowMs - hot.spentAtMs < this.policy.prefetchMs / 4
  }

  /** Counts a key that is not hot. Returns it once it is: a grant would be worth its request. */
  see({ key, cost, limit }: Check, nowMs: number): HotKey | undefined {
    if (cost === 0) return undefined
    if (nowMs - this.#seenSinceMs >= secondMs) {
      this.#seen.clear()
      this.#seenSinceMs = nowMs
    }
    this.#seen.add(key)
    const requests = this.#seen.sureCount(key)
    if (requests < this.#leastASecond || this.#keys.size >= maxHotKeys) return undefined
    const rate = { requests, units: requests * cost }
    const hot = new HotKey(key, { limit, rate, nowMs, counters: this.#counters })
    this.#keys.set(key, hot)
    return hot
  }

  /** Forgets a key that is not hot any more. */
  cool(hot: HotKey, nowMs: number): void {
    const { open, closed, asked } = hot.holding
    if (asked || open.length > 0 || closed.length > 0) return
    if (!this.isHot(hot, nowMs)) this.#keys.delete(hot.key)
  }
}
