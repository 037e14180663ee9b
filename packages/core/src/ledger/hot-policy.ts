import { admittedOutcome } from '../engine/outcome.ts'
import type { Check, Receipt } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { Granted, Outcome } from '../model/store.ts'
import type { GrantCounters } from '../model/store-health.ts'
import { SpaceSaving } from '../runtime/hot-keys.ts'
import { monotonicMs } from '../waiting/timers.ts'
import { Holding } from './holding.ts'
import type { StoreWay } from './local-units.ts'

/** Number of keys in the sketch. */
const sketchSize = 1_000
/** Maximum number of keys with grants in this process. */
const maxHotKeys = 10_000
/** Minimum number of requests that a grant must be good for. */
const leastRequests = 10
const secondMs = 1_000
/** Time (ms) without requests after which a policy without hot keys is dropped. */
export const idleMs = 2_000

/** The hot keys of one policy in this process, found by a sketch. */
export class HotPolicy {
  readonly policy: Policy
  readonly way: StoreWay
  readonly counters: GrantCounters
  readonly keys: Map<string, HotKey> = new Map()
  /** Minimum requests per second of a hot key. */
  readonly leastASecond: number
  readonly #seen = new SpaceSaving(sketchSize)
  #seenSinceMs = Number.NEGATIVE_INFINITY

  constructor(policy: Policy, way: StoreWay, counters: GrantCounters) {
    this.policy = policy
    this.way = way
    this.counters = counters
    this.leastASecond = Math.max(leastRequests, (leastRequests * secondMs) / policy.prefetchMs)
  }

  /** Returns whether it can be dropped: the sketch has seen no key recently either. */
  isIdle(nowMs: number): boolean {
    return this.keys.size === 0 && nowMs - this.#seenSinceMs >= idleMs
  }

  /** Counts a request of a key that is not hot. Returns the key if that makes it hot. */
  see(check: Check, nowMs: number): HotKey | undefined {
    const { key, cost } = check
    if (cost === 0) return undefined
    if (nowMs - this.#seenSinceMs >= secondMs) {
      this.#seen.clear()
      this.#seenSinceMs = nowMs
    }
    this.#seen.add(key)
    const requests = this.#seen.sureCount(key)
    if (requests < this.leastASecond || this.keys.size >= maxHotKeys) return undefined
    const hot = new HotKey(this, check, requests)
    this.keys.set(key, hot)
    return hot
  }
}

/** Requests per second, and their units. */
interface Rate {
  requests: number
  units: number
}

/** A key with grants in this process. */
export class HotKey extends Holding {
  readonly key: string
  /** The limit of the last request. Grants taken under another limit are not spent. */
  limit: number
  /** The store's last answer to a request for a grant. */
  lastAnswer: Granted | undefined = undefined
  /** No grant is requested before this monotonic time (ms). */
  askAfterMs = 0
  /** Monotonic time (ms) at which a grant was last spent. */
  spentAtMs: number = Number.NEGATIVE_INFINITY
  readonly of: HotPolicy
  #startMs: number = monotonicMs()
  #now: Rate = { requests: 0, units: 0 }
  #before: Rate

  /** @param requests those of the last second */
  constructor(of: HotPolicy, { key, cost, limit }: Check, requests: number) {
    super(of.counters)
    this.of = of
    this.key = key
    this.limit = limit
    this.#before = { requests, units: requests * cost }
  }

  /** Divides the remaining units, so that all processes get some. */
  get divisor(): number {
    const { store, instances = store.fleet?.instances ?? 1 } = this.of.way.limiter
    return 2 * instances
  }

  count(units: number, nowMs: number): void {
    if (units === 0) return
    this.#turn(nowMs)
    this.#now.requests += 1
    this.#now.units += units
  }

  /** The size of a grant: the units for its lifetime at the current rate. */
  unitsOfGrant(nowMs: number): number {
    const units = Math.ceil((this.#rate(nowMs).units * this.of.policy.prefetchMs) / secondMs)
    return Math.max(leastRequests * this.meanCost(nowMs), units)
  }

  isHot(nowMs: number): boolean {
    return this.#rate(nowMs).requests >= this.of.leastASecond / 2
  }

  /** Returns whether grants were spent so recently that the next one will be spent too. */
  isSpent(nowMs: number): boolean {
    return this.isHot(nowMs) && nowMs - this.spentAtMs < this.of.policy.prefetchMs / 4
  }

  meanCost(nowMs: number): number {
    const { requests, units } = this.#rate(nowMs)
    return requests === 0 ? 1 : Math.ceil(units / requests)
  }

  /** Closes the grants of another limit. Alternating limits must not cost one request each. */
  changeLimit(limit: number, nowMs: number): void {
    this.limit = limit
    this.close(() => true)
    this.askAfterMs = nowMs + this.of.policy.prefetchMs / 2
  }

  /** Drops the key if it is no longer hot. */
  cool(nowMs: number): void {
    const isInUse = this.pending || this.open.length > 0 || this.closed.length > 0
    if (!isInUse && !this.isHot(nowMs)) this.of.keys.delete(this.key)
  }

  /** The outcome of a check answered from a grant. Units that others took since are unknown. */
  outcomeOf(check: Check, receipt: Receipt | undefined): Outcome {
    const remaining = (this.lastAnswer?.remaining ?? 0) + this.left
    const resetMs = remaining === 0 ? (this.lastAnswer?.resetMs ?? 0) : 0
    const outcome = admittedOutcome(check, { remaining, resetMs })
    outcome.receipt = receipt
    return outcome
  }

  #rate(nowMs: number): Rate {
    this.#turn(nowMs)
    return this.#now.requests > this.#before.requests ? this.#now : this.#before
  }

  #turn(nowMs: number): void {
    const elapsedMs = nowMs - this.#startMs
    if (elapsedMs < secondMs) return
    const { requests, units } = this.#now
    this.#before = {
      requests: Math.ceil((requests * secondMs) / elapsedMs),
      units: Math.ceil((units * secondMs) / elapsedMs),
    }
    this.#now = { requests: 0, units: 0 }
    this.#startMs = nowMs
  }
}
