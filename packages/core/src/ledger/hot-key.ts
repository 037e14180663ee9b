import { admittedOutcome } from '../engine/outcome.ts'
import type { Check, Receipt } from '../model/check.ts'
import type { Outcome } from '../model/store.ts'
import type { GrantCounters } from '../model/store-health.ts'
import { Holding } from './holding.ts'

const secondMs = 1_000

/** The requests of a second, and their units. */
interface Rate {
  requests: number
  units: number
}

/** A key that this process takes grants for. */
export class HotKey {
  readonly key: string
  readonly holding: Holding
  /** The limit of the last request. Only grants that were taken under it may be spent. */
  limit: number
  /** The answer to the last request for a grant. */
  answered: Outcome | undefined = undefined
  /** No grant is asked for before this time, in ms of the monotonic clock. */
  askAfterMs = 0
  /** Time at which a grant was last spent, in ms of the monotonic clock. */
  spentAtMs: number = Number.NEGATIVE_INFINITY
  #startMs: number
  #now: Rate = { requests: 0, units: 0 }
  #before: Rate

  /** @param rate the requests of the last second */
  constructor(
    key: string,
    {
      limit,
      rate,
      nowMs,
      counters,
    }: { limit: number; rate: Rate; nowMs: number; counters: GrantCounters },
  ) {
    this.key = key
    this.holding = new Holding(counters)
    this.limit = limit
    this.#before = rate
    this.#startMs = nowMs
  }

  count(units: number, nowMs: number): void {
    if (units === 0) return
    this.#turn(nowMs)
    this.#now.requests += 1
    this.#now.units += units
  }

  requestsASecond(nowMs: number): number {
    return this.#rate(nowMs).requests
  }

  /** The units of the last second, about. */
  unitsASecond(nowMs: number): number {
    return this.#rate(nowMs).units
  }

  meanCost(nowMs: number): number {
    const { requests, units } = this.#rate(nowMs)
    return requests === 0 ? 1 : Math.ceil(units / requests)
  }

  /**
   * The outcome of a check that a grant has answered. Units that others have taken since are
   * unknown.
   */
  outcomeOf(check: Check, receipt: Receipt | undefined): Outcome {
    const remaining = (this.answered?.remaining ?? 0) + this.holding.left
    const resetMs = remaining === 0 ? (this.answered?.resetMs ?? 0) : 0
    return admittedOutcome(check, { remaining, resetMs, receipt })
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
