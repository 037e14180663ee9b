/**
 * Time that passes by checks and not by seconds: with K keys of limit L and window W it moves on by W / (K · L) at each, so full logs
 * stay exactly full, and every admission finds one entry that has just expired, at whatever speed a subject runs.
 */
export class SimulatedClock {
  #now: number
  #stepMs = 0

  constructor(startMs: number = Date.now()) {
    this.#now = startMs
  }

  /** Whole milliseconds, as all clocks of Sluice give them. */
  readonly read = (): number => Math.floor(this.#now)

  /** How far each `tick` goes from now on. */
  set stepMs(stepMs: number) {
    this.#stepMs = stepMs
  }

  tick(): void {
    this.#now += this.#stepMs
  }

  advance(ms: number): void {
    this.#now += ms
  }
}
