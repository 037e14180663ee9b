interface Slice {
  readonly startMs: number
  units: number
}

const slicesOfALife = 8

/**
 * Units with their times, by a clock that never steps. A time is exact to an eighth of the units'
 * life. Units that count no more are dropped.
 */
export class RecentUnits {
  readonly #lifeMs: number
  readonly #slices: Slice[] = []

  constructor(lifeMs: number) {
    this.#lifeMs = lifeMs
  }

  add(units: number, nowMs: number): void {
    const last = this.#slices.at(-1)
    if (last && nowMs - last.startMs < this.#lifeMs / slicesOfALife) last.units += units
    else this.#slices.push({ startMs: nowMs, units })
  }

  /** Returns the units that may still count: over-counting is safer than under-counting. */
  total(nowMs: number): number {
    const sliceMs = this.#lifeMs / slicesOfALife
    while (this.#slices[0] && this.#slices[0].startMs + sliceMs + this.#lifeMs <= nowMs) {
      this.#slices.shift()
    }
    return this.#slices.reduce((sum, { units }) => sum + units, 0)
  }

  /** Takes units away, the oldest first; returns how many there were. */
  take(units: number, nowMs: number): number {
    const taken = Math.min(units, this.total(nowMs))
    let left = taken
    while (left > 0) {
      const first = this.#slices[0]
      if (!first) break
      const some = Math.min(left, first.units)
      first.units -= some
      left -= some
      if (first.units === 0) this.#slices.shift()
    }
    return taken
  }
}
