import { algorithmOf } from '../algorithms/table.ts'
import type { Check } from '../model/check.ts'

/** The capacity of a bucket, and its speed. */
interface Size {
  /** Units · ms. */
  readonly capacityLevel: number
  /** Units · ms that drain every millisecond. */
  readonly drain: number
  readonly windowMs: number
}

/**
 * Units in a bucket that have not drained. It drains by the share of this process, since each
 * process of a fleet has a bucket of its own, and the store has one for all. Over-counting is safer
 * than under-counting.
 */
export class DrainingUnits {
  #size: Size
  #level = 0
  #atMs = 0

  constructor(size: Size) {
    this.#size = size
  }

  /** Continues with another size. */
  resize(size: Size, nowMs: number): void {
    this.#drain(nowMs)
    this.#size = size
  }

  add(units: number, nowMs: number): void {
    this.#drain(nowMs)
    const { capacityLevel, windowMs } = this.#size
    const full = Math.max(this.#level, capacityLevel)
    this.#level = Math.min(this.#level + units * windowMs, full)
  }

  total(nowMs: number): number {
    this.#drain(nowMs)
    return Math.ceil(this.#level / this.#size.windowMs)
  }

  /** Takes units away; returns how many there were. */
  take(units: number, nowMs: number): number {
    const taken = Math.min(units, this.total(nowMs))
    this.#level = Math.max(0, this.#level - taken * this.#size.windowMs)
    return taken
  }

  #drain(nowMs: number): void {
    this.#level = Math.max(0, this.#level - (nowMs - this.#atMs) * this.#size.drain)
    this.#atMs = nowMs
  }
}

/**
 * Returns the bucket of a check with the level of the store and the speed of the local one.
 * `undefined` for another algorithm, or a bucket that never drains.
 */
export function bucketSize(check: Check, local: Check): Size | undefined {
  const { windowMs } = check.policy
  const capacityLevel = algorithmOf(check.policy).capacityLevel?.(check)
  if (capacityLevel === undefined || local.limit === 0) return undefined
  return { capacityLevel, drain: local.limit, windowMs }
}
