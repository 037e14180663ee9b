/** Number of time slices per window. */
const slicesPerWindow = 64

/**
 * Units that calls of this process have taken in a window, to report to a store that has lost its
 * data.
 */
export class RecentUnits {
  readonly #windowMs: number
  /** Units by slices of time, each with its first and its last answer. */
  #slices: { readonly from: number; to: number; units: number }[] = []

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Units that still count; never too few. */
  get sum(): number {
    return this.#counting(performance.now()).reduce((sum, { units }) => sum + units, 0)
  }

  /** Adds a call that has an answer or can no longer get one. */
  add(units: number): void {
    const now = performance.now()
    const last = this.#slices.at(-1)
    if (last && now - last.from < this.#windowMs / slicesPerWindow) {
      last.to = now
      last.units += units
    } else this.#slices = [...this.#counting(now), { from: now, to: now, units }]
  }

  #counting(now: number) {
    return this.#slices.filter(({ to }) => to + this.#windowMs > now)
  }
}
