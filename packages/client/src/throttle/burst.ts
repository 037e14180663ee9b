import { never } from '../runtime/clock.ts'

interface Served {
  readonly remaining: number
  /** Calls without an answer so far. */
  readonly underWay: number
  /** Time of the reset. */
  readonly resetMs: number
  /** Calls that the served one releases. */
  readonly allowed: number
}

/**
 * The units that answers show after a gate has opened. Waiting calls use them without spacing: each
 * served call lets two more go, so clients that share a quota soon notice each other.
 */
export class Burst {
  /** Units left; infinite until an answer has them. */
  #left = never
  /** Calls that the served ones release. */
  #allowed = 0
  #resetMs = 0
  /** Lowest number of units in answers since all units were taken. */
  #lowest = never
  #hasBegun = false

  /** True if the next call may be sent without spacing. */
  get isOpen(): boolean {
    return Math.min(this.#left, this.#allowed) >= 1
  }

  /** Time of the reset once the burst has taken all units; 0 before. */
  get spentUntilMs(): number {
    return this.#hasBegun && this.#left <= 0 ? this.#resetMs : 0
  }

  /** Records a call. A call sent although nothing is left starts over. */
  take(): void {
    if (this.isOpen) {
      this.#hasBegun = true
      this.#allowed -= 1
    }
    if (this.#left > 0) this.#left -= 1
    else this.end()
  }

  /**
   * Records a served call. Answers may arrive out of order, so the lowest number counts. Returns
   * true if another call may be sent.
   */
  learn({ remaining, underWay, resetMs, allowed }: Served): boolean {
    this.#left = Math.min(this.#left, remaining - underWay)
    this.#resetMs = resetMs
    this.#allowed += allowed
    if (this.#left > 0) return this.isOpen
    this.#lowest = Math.min(this.#lowest, remaining)
    if (underWay > 0 || this.#lowest === 0) return false
    // Some units were counted twice or came back during the burst, which continues.
    this.end()
    this.#hasBegun = true
    return true
  }

  end(): void {
    this.#left = never
    this.#allowed = 0
    this.#lowest = never
    this.#hasBegun = false
  }
}
