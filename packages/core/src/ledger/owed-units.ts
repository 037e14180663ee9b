import { algorithmOf } from '../algorithms/table.ts'
import type { Check } from '../model/check.ts'

/** Units that may still count, by a clock that never steps: over-counting is the safe side. */
export interface OwedUnits {
  add(units: number, nowMs: number): void
  total(nowMs: number): number
  /** Takes units away, the oldest first; returns how many there were. */
  take(units: number, nowMs: number): number
  /** Goes on with the limits of other checks. */
  resize?(check: Check, local: Check, nowMs: number): void
}

/** @param local the check as this process decides it: its bucket drains by this limit */
export function owedUnits({ policy }: Check, local: Check): OwedUnits {
  const algorithm = algorithmOf(policy)
  const isDraining = algorithm.capacityLevel !== undefined && local.limit > 0
  return isDraining ? new DrainingUnits(policy.windowMs) : new RecentUnits(algorithm.lifeMs(policy))
}

interface Slice {
  readonly startMs: number
  units: number
}

const slicesOfALife = 8

/**
 * Units with their times. A time is exact to an eighth of the units' life. Units that count no more
 * are dropped.
 */
class RecentUnits implements OwedUnits {
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

  total(nowMs: number): number {
    const sliceMs = this.#lifeMs / slicesOfALife
    while (this.#slices[0] && this.#slices[0].startMs + sliceMs + this.#lifeMs <= nowMs) {
      this.#slices.shift()
    }
    return this.#slices.reduce((sum, { units }) => sum + units, 0)
  }

  take(units: number, nowMs: number): number {
    const taken = Math.min(units, this.total(nowMs))
    let left = taken
    while (left > 0 && this.#slices[0]) {
      const [first] = this.#slices
      const some = Math.min(left, first.units)
      first.units -= some
      left -= some
      if (first.units === 0) this.#slices.shift()
    }
    return taken
  }
}

/**
 * Units in a bucket that have not drained. It has the level of the store, and drains by the share
 * of this process: each process of a fleet has a bucket of its own, and the store has one for all.
 */
class DrainingUnits implements OwedUnits {
  readonly #windowMs: number
  /** Units · ms. */
  #capacityLevel = 0
  /** Units · ms that drain every millisecond. */
  #drain = 0
  #level = 0
  #atMs = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  resize(check: Check, local: Check, nowMs: number): void {
    this.#drainUntil(nowMs)
    this.#capacityLevel = algorithmOf(check.policy).capacityLevel?.(check) ?? 0
    this.#drain = local.limit
  }

  add(units: number, nowMs: number): void {
    this.#drainUntil(nowMs)
    const full = Math.max(this.#level, this.#capacityLevel)
    this.#level = Math.min(this.#level + units * this.#windowMs, full)
  }

  total(nowMs: number): number {
    this.#drainUntil(nowMs)
    return Math.ceil(this.#level / this.#windowMs)
  }

  take(units: number, nowMs: number): number {
    const taken = Math.min(units, this.total(nowMs))
    this.#level = Math.max(0, this.#level - taken * this.#windowMs)
    return taken
  }

  #drainUntil(nowMs: number): void {
    this.#level = Math.max(0, this.#level - (nowMs - this.#atMs) * this.#drain)
    this.#atMs = nowMs
  }
}
