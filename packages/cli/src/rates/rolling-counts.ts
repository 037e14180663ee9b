/** Counts requests in two rolling windows, and keeps the most that each has had. */
class RollingPair {
  #shortMax = 0
  #longMax = 0
  readonly #short: number
  readonly #long: number
  /** Times in ascending order, each followed by the requests at that time. */
  #entries: number[] = []
  #shortTail = 0
  #shortSum = 0
  #longTail = 0
  #longSum = 0

  /** @param short length of the shorter window, in units of the times @param long of the longer */
  constructor(short: number, long: number) {
    this.#short = short
    this.#long = long
  }

  get shortMax(): number {
    return this.#shortMax
  }

  get longMax(): number {
    return this.#longMax
  }

  /**
   * @param time not before that of the last request
   * @param slack units by which both windows are longer
   */
  add(time: number, slack = 0): void {
    const entries = this.#entries
    const last = entries.length - 2
    if (last >= 0 && entries[last] === time) entries[last + 1] = (entries[last + 1] ?? 0) + 1
    else entries.push(time, 1)
    this.#shortSum += 1
    while ((entries[this.#shortTail] ?? time) <= time - this.#short - slack) {
      this.#shortSum -= entries[this.#shortTail + 1] ?? 0
      this.#shortTail += 2
    }
    this.#longSum += 1
    while ((entries[this.#longTail] ?? time) <= time - this.#long - slack) {
      this.#longSum -= entries[this.#longTail + 1] ?? 0
      this.#longTail += 2
    }
    if (this.#shortSum > this.#shortMax) this.#shortMax = this.#shortSum
    if (this.#longSum > this.#longMax) this.#longMax = this.#longSum
    if (this.#longTail > 64 && this.#longTail * 2 > entries.length) this.#forget()
  }

  /** Drops what has left both windows. */
  #forget(): void {
    this.#entries = this.#entries.slice(this.#longTail)
    this.#shortTail -= this.#longTail
    this.#longTail = 0
  }
}

/** The windows in which rates are counted: 1 s, 10 s, 1 min and 1 h. */
export const rateWindowsMs: readonly number[] = [1_000, 10_000, 60_000, 3_600_000]

const secondMs = 1_000

/**
 * The most requests that one client has made in any window of 1 s, 10 s, 1 min and 1 h. The two
 * shorter ones are exact to the millisecond. The two longer ones count by seconds, so that a client
 * that is always there takes 3,601 entries at most. They are up to a second too long for times that
 * are not whole seconds, so that a limit of this rate refuses nobody.
 */
export class RollingCounts {
  #firstMs: number | undefined
  #exact: RollingPair | undefined
  #coarse: RollingPair | undefined
  #isWholeSeconds = true

  /** @param timeMs not before that of the last request */
  add(timeMs: number): void {
    if (timeMs % secondMs !== 0) this.#isWholeSeconds = false
    if (this.#firstMs === undefined) {
      this.#firstMs = timeMs
      return
    }
    // Most clients of a large log come once: they need no lists.
    const exact = this.#exact ?? new RollingPair(1_000, 10_000)
    const coarse = this.#coarse ?? new RollingPair(60, 3_600)
    if (!this.#exact) {
      exact.add(this.#firstMs)
      coarse.add(Math.floor(this.#firstMs / secondMs))
    }
    exact.add(timeMs)
    coarse.add(Math.floor(timeMs / secondMs), this.#isWholeSeconds ? 0 : 1)
    this.#exact = exact
    this.#coarse = coarse
  }

  /** In the order of the windows; 1 everywhere for a client that came once. */
  get maxima(): readonly number[] {
    const { shortMax: second = 1, longMax: tenSeconds = 1 } = this.#exact ?? {}
    const { shortMax: minute = 1, longMax: hour = 1 } = this.#coarse ?? {}
    return [second, tenSeconds, minute, hour]
  }
}
