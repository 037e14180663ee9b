import { Ramp } from './ramp.ts'

/** The time in which failure modes decide for some requests at least: from the failure of a store until all traffic is back. */
export class Outage {
  #since: number | undefined
  #ramp: Ramp | undefined
  #decisions = 0

  get isUnderWay(): boolean {
    return this.#since !== undefined
  }

  /** How traffic returns; `undefined` while none does. */
  get ramp(): Ramp | undefined {
    return this.#ramp
  }

  /** The store failed. Returns whether the outage begins with that: it may have failed again while traffic returned. */
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

  /** The store answers again. */
  beginReturn(nowMs: number): void {
    this.#ramp = new Ramp(nowMs, Math.random)
  }

  /** All traffic is back. */
  end(nowMs: number): { durationMs: number; decisions: number } {
    const durationMs = Math.round(nowMs - (this.#since ?? nowMs))
    this.#since = undefined
    this.#ramp = undefined
    return { durationMs, decisions: this.#decisions }
  }
}
