import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { startQuietTimer } from '../waiting/timers.ts'

/** The most decisions in a row that have one timing. */
const decisionsATiming = 16
/** The longest time (ms) for which a timing stands for further decisions. */
const maxAgeMs = 50

/** The timing of one decision, from the question on. */
export class DecisionTiming {
  /** Time of the decision, and of the question before it is decided: ms of `performance.now()`. */
  atMs: number = monotonicMs()
  durationMs = 0
  /** True if the decision came at once, without a wait for the store. */
  isImmediate = true
  #hasEnded = false

  /** Notes that the decision is there. Only the first call counts. */
  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    const nowMs = monotonicMs()
    this.durationMs = nowMs - this.atMs
    this.atMs = nowMs
  }
}

/**
 * Times the decisions of a memory store. Two looks at the clock cost as much as such a decision. So
 * the timing of one decision stands for the next 15 too, if they come within 50 ms.
 */
export class SharedTimer {
  #latest: DecisionTiming | undefined
  #left = 0
  #isAging = false

  /** Begins the timing of a decision that is answered at once. */
  begin(): DecisionTiming {
    if (this.#latest === undefined || this.#left === 0) return this.#renew()
    this.#left -= 1
    return this.#latest
  }

  #renew(): DecisionTiming {
    this.#latest = new DecisionTiming()
    this.#left = decisionsATiming - 1
    if (!this.#isAging) this.#age()
    return this.#latest
  }

  /** One timer for all timings of its time: the next one may be renewed early. */
  #age(): void {
    this.#isAging = true
    startQuietTimer(() => {
      this.#isAging = false
      this.#left = 0
    }, maxAgeMs)
  }
}
