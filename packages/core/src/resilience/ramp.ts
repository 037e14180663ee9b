import { placeOf } from '../hash.ts'

/** How long it takes until all traffic is back, give or take the jitter, so that a fleet does not come back at once. */
const rampMs = 2_000
const jitter = 0.25

/** The gradual return of traffic: a growing share of the keys, each of which moves once. */
export class Ramp {
  readonly #startMs: number
  readonly #durationMs: number

  /** @param random from 0 to below 1 */
  constructor(nowMs: number, random: () => number) {
    this.#startMs = nowMs
    this.#durationMs = rampMs * (1 + jitter * (2 * random() - 1))
  }

  isOver(nowMs: number): boolean {
    return nowMs - this.#startMs >= this.#durationMs
  }

  isBack(key: string, nowMs: number): boolean {
    return placeOf(key) < (nowMs - this.#startMs) / this.#durationMs
  }
}
