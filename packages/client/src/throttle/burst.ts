import { never } from '../runtime/clock.ts'

interface Served {
  readonly remaining: number
  /** Calls that have no answer yet. */
  readonly underWay: number
  /** Time of the reset. */
  readonly resetMs: number
  /** Calls that the served one lets go. */
  readonly allowed: number
}

/**
 * The units that answers show after a gate has opened. Waiting calls use them without spacing: each
 * served call lets two more go, so clients that share a quota soon notice each other.
 */
export class Burst {
  /** Units left; infinite until an answer tells. */
  #left = never
  /** Calls that the served ones let go. */
  #allowed = 0
  #resetMs = 0
  /** Fewest units of the answers since all units were taken. */
  #lowest = never
  #hasBegun = false

  /** True if the next call may go without spacing. */
  get isOpen(): boolean {
    return Math.min(this.#left, this.#allowed) >= 1
  }

  /** Time of the reset once the burst has taken all units; 0 before. */
  get spentUntilMs(): number {
    return this.#hasBegun && this.#left <= 0 ? this.#resetMs : 0
  }

  /** Notes a call. One that goes although nothing is left begins anew. */
  take(): void {
    if (this.isOpen) {
      this.#hasBegun = true
      this.#allowed -= 1
    }
    if (this.#left > 0) this.#left -= 1
    else this.end()
  }

  /**
   * Notes a served call. Answers may arrive out of order, so the fewest units count. Returns true
   * if another call may go.
   */
  learn({ remaining, underWay, resetMs, allowed }: Served): boolean {
    this.#left = Math.min(this.#left, remaining - underWay)
    this.#resetMs = resetMs
    this.#allowed += allowed
    if (this.#left > 0) return this.isOpen
    this.#lowest = Math.min(this.#lowest, remaining)
    if (underWay > 0 || this.#lowest === 0) return false
    // Some units were counted twice, or came back during the burst, which continues.
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
