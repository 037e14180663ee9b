/** A server whose delay grows with the rate that is let through: 1 / (1 − load), with a lag, and a delay of one second at most. */
export class Plant {
  readonly #capacity: number
  readonly #lagMs: number
  delayMs: number = 1

  constructor({ capacity, lagMs }: { capacity: number; lagMs: number }) {
    this.#capacity = capacity
    this.#lagMs = lagMs
  }

  /** Lets time pass while so many requests a second come in. */
  run(rate: number, ms: number): void {
    const load = rate / this.#capacity
    const settled = load >= 0.999 ? 1_000 : Math.min(1_000, 1 / (1 - load))
    this.delayMs += (settled - this.delayMs) * (1 - Math.exp(-ms / this.#lagMs))
  }
}

/** How often a series turns around. */
export function turns(series: readonly number[]): number {
  let count = 0
  let direction = 0
  for (const [index, value] of series.entries()) {
    const step = Math.sign(value - (series[index - 1] ?? value))
    if (step === 0) continue
    if (direction !== 0 && step !== direction) count += 1
    direction = step
  }
  return count
}
