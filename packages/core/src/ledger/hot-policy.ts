import { admittedOutcome } from '../engine/outcome.ts'
import type { Check, Receipt } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { Granted, Outcome } from '../model/store.ts'
import type { GrantCounters } from '../model/store-health.ts'
import { SpaceSaving } from '../runtime/hot-keys.ts'
import { Holding } from './holding.ts'
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
  readonly way: StoreWay
  readonly counters: GrantCounters
  readonly keys: Map<string, HotKey> = new Map()
  /** The least requests of a hot key. */
  readonly leastASecond: number
  readonly #seen = new SpaceSaving(sketchSize)
  #seenSinceMs = Number.NEGATIVE_INFINITY

  constructor(policy: Policy, way: StoreWay, counters: GrantCounters) {
    this.policy = policy
    this.way = way
    this.counters = counters
    this.leastASecond = Math.max(leastRequests, (leastRequests * secondMs) / policy.prefetchMs)
  }

  /** Tells whether nothing would be lost without it: the sketch too has seen no key of late. */
  isIdle(nowMs: number): boolean {
    return this.keys.size === 0 && nowMs - this.#seenSinceMs >= idleMs
  }

  /** Counts a key that is not hot. Returns it once it is: a grant would be worth its request. */
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
    const hot = new HotKey(this, check, { requests, nowMs })
    this.keys.set(key, hot)
    return hot
  }
}

/** The requests of a second, and their units. */
interface Rate {
  requests: number
  units: number
}

/** A key that this process takes grants for. */
export class HotKey extends Holding {
  readonly key: string
  /** The limit of the last request. Only grants that were taken under it may be spent. */
  limit: number
  /** The answer to the last request for a grant. */
  lastAnswer: Granted | undefined = undefined
  /** No grant is asked for before this time, in ms of the monotonic clock. */
  askAfterMs = 0
  /** Time at which a grant was last spent, in ms of the monotonic clock. */
  spentAtMs: number = Number.NEGATIVE_INFINITY
  readonly of: HotPolicy
  #startMs: number
  #now: Rate = { requests: 0, units: 0 }
  #before: Rate

  /** @param seen the requests of the last second, and the present time */
  constructor(
    of: HotPolicy,
    { key, cost, limit }: Check,
    seen: { requests: number; nowMs: number },
  ) {
    super(of.counters)
    this.of = of
    this.key = key
    this.limit = limit
    this.#before = { requests: seen.requests, units: seen.requests * cost }
    this.#startMs = seen.nowMs
  }

  /** The number that the remaining units are divided by, so that all processes get some. */
  get divisor(): number {
    const { store, instances = store.fleet?.instances ?? 1 } = this.of.way
    return 2 * instances
  }

  count(units: number, nowMs: number): void {
    if (units === 0) return
    this.#turn(nowMs)
    this.#now.requests += 1
    this.#now.units += units
  }

  /** The size of a grant: the units of its life at the present rate. */
  unitsOfGrant(nowMs: number): number {
    const units = Math.ceil((this.#rate(nowMs).units * this.of.policy.prefetchMs) / secondMs)
    return Math.max(leastRequests * this.meanCost(nowMs), units)
  }

  isHot(nowMs: number): boolean {
    return this.#rate(nowMs).requests >= this.of.leastASecond / 2
  }

  /** Tells whether its grants were spent so lately that the next one will be spent too. */
  isSpent(nowMs: number): boolean {
    return this.isHot(nowMs) && nowMs - this.spentAtMs < this.of.policy.prefetchMs / 4
  }

  meanCost(nowMs: number): number {
    const { requests, units } = this.#rate(nowMs)
    return requests === 0 ? 1 : Math.ceil(units / requests)
  }

  /**
   * Closes the grants that were taken under another limit: a grant is spent only under its own.
   * Limits that take turns must not cost a request for a grant each time.
   */
  changeLimit(limit: number, nowMs: number): void {
    this.limit = limit
    this.close(() => true)
    this.askAfterMs = nowMs + this.of.policy.prefetchMs / 2
  }

  /** Forgets the key if it is not hot any more. */
  cool(nowMs: number): void {
    const isInUse = this.pending || this.open.length > 0 || this.closed.length > 0
    if (!isInUse && !this.isHot(nowMs)) this.of.keys.delete(this.key)
  }

  /**
   * The outcome of a check that a grant has answered. Units that others have taken since are
   * unknown.
   */
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
