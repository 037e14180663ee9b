import { air } from './air.ts'
import type { Quota } from './gate.ts'

/**
 * What is left of a policy, as far as a client can know: the last answer's figure less the calls that are under way. The
 * first half of a quota may be used at will, the second is spread over what is left of the window, and what comes after
 * it evenly, until an answer tells more.
 */
export class Pace {
  #limit = 0
  #left = 0
  #resetMs = 0
  /** Calls that have a slot and no answer yet. */
  #underWay = 0

  /** Counts a call that has taken the slot at `slotMs`. Returns when the next one may go, `evenMs` later where nothing is known. */
  take(slotMs: number, evenMs: number): number {
    this.#underWay += 1
    this.#left -= 1
    if (this.#isPlenty()) return slotMs
    if (slotMs >= this.#resetMs) return slotMs + evenMs
    return slotMs + (this.#resetMs - slotMs) / (Math.max(0, this.#left) + 1)
  }

  /** Takes back the count of a call that was answered, or will not be. */
  settle(): void {
    this.#underWay -= 1
  }

  /** Corrects the estimate by an answer. Returns when the next call may go. */
  learn({ limit, remaining, resetMs }: Quota, nowMs: number): number | undefined {
    if (remaining === undefined || resetMs === undefined) return undefined
    this.#limit = limit ?? remaining
    this.#left = remaining - this.#underWay
    this.#resetMs = nowMs + resetMs * air
    if (this.#isPlenty()) return nowMs
    return this.#left > 0 ? undefined : this.#resetMs
  }

  /** Notes that nothing is left until `untilMs`. */
  spend(untilMs: number): void {
    this.#left = 0
    this.#resetMs = untilMs
  }

  #isPlenty(): boolean {
    return this.#left > this.#limit / 2
  }
}
