import { fractionOf } from '../runtime/hash.ts'

/**
 * The duration of the return of traffic, before jitter. With jitter a fleet does not return at
 * once.
 */
const rampMs = 2_000
const jitter = 0.25

/** The gradual return of traffic: a growing share of the keys, each of which moves once. */
class Ramp {
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
    return fractionOf(key) < (nowMs - this.#startMs) / this.#durationMs
  }
}

/**
 * The time in which failure modes decide for some requests at least: from the store's failure until
 * all traffic is back.
 */
export class Outage {
  #since: number | undefined
  #ramp: Ramp | undefined
  #decisions = 0

  get isUnderWay(): boolean {
    return this.#since !== undefined
  }

  /** The gradual return of traffic; `undefined` while none returns. */
  get ramp(): Ramp | undefined {
    return this.#ramp
  }

  /**
   * Notes that the store failed. Returns whether that begins the outage: the store may have failed
   * again while traffic returned.
   */
  begin(nowMs: number): boolean {
    this.#ramp = undefined
    if (this.#since !== undefined) return false
    this.#since = nowMs
    this.#decisions = 0
    return true
  }

  countDecision(): void {
    this.#decisions += 1
  }

  /** Notes that the store answers again. */
  beginReturn(nowMs: number): void {
    this.#ramp = new Ramp(nowMs, Math.random)
  }

  /** Notes that all traffic is back. */
  end(nowMs: number): { durationMs: number; decisions: number } {
    const durationMs = Math.round(nowMs - (this.#since ?? nowMs))
    this.#since = undefined
    this.#ramp = undefined
    return { durationMs, decisions: this.#decisions }
  }
}
