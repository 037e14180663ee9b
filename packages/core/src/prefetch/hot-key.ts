import type { Outcome } from '../store.ts'
import { Holding } from './holding.ts'

/** A second, over which units are counted. */
const secondMs = 1_000

/** A key that this process takes grants for. */
export class HotKey {
  readonly key: string
  readonly holding: Holding = new Holding()
  /** The limit of the last request. Only grants that were taken under it may be spent. */
  limit: number
  /** The answer to the last request for a grant. */
  answered: Outcome | undefined = undefined
  /** No grant is asked for before this time, in ms of the monotonic clock. */
  askAfterMs = 0
  /** Time at which a grant was last spent, in ms of the monotonic clock. */
  spentAtMs: number = Number.NEGATIVE_INFINITY
  #startMs: number
  #units = 0
  #unitsBefore: number

  /** @param units the units of the last second */
  constructor(
    key: string,
    { limit, units, nowMs }: { limit: number; units: number; nowMs: number },
  ) {
    this.key = key
    this.limit = limit
    this.#unitsBefore = units
    this.#startMs = nowMs
  }

  count(units: number, nowMs: number): void {
    this.#turn(nowMs)
    this.#units += units
  }

  /** The units of the last second, about. */
  unitsASecond(nowMs: number): number {
    this.#turn(nowMs)
    return Math.max(this.#units, this.#unitsBefore)
  }

  #turn(nowMs: number): void {
    const elapsedMs = nowMs - this.#startMs
    if (elapsedMs < secondMs) return
    this.#unitsBefore = Math.ceil((this.#units * secondMs) / elapsedMs)
    this.#units = 0
    this.#startMs = nowMs
  }
}
