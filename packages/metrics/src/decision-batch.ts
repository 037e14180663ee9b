import { type DecisionEvent, notify } from '@sluice/core'

/** The part of an event that metrics count: safe to keep, since it references no request. */
export type CountedDecision = Omit<DecisionEvent, 'request' | 'key' | 'digest'>

/** Maximum number of decisions that wait to be counted. */
const maxWaiting = 128

/**
 * Decisions to be counted together. Between two decisions a process does so much else that the
 * counts have left the CPU caches: one by one, counting costs twice as much.
 */
export class DecisionBatch {
  readonly #count: (decision: CountedDecision) => void
  /** Slots for decisions, which are reused. */
  readonly #places: CountedDecision[] = []
  #waiting = 0
  #isOneByOne = false

  /** @param count errors that it throws are reported once as a warning */
  constructor(count: (decision: CountedDecision) => void) {
    this.#count = count
  }

  /** Adds a decision. It is kept for a while, so it must not reference its request. */
  add(decision: CountedDecision): void {
    this.#places[this.#waiting] = decision
    this.#waiting += 1
    if (this.#waiting === maxWaiting || this.#isOneByOne) this.countAll()
  }

  /** Counts all waiting decisions, before anything is read. */
  countAll(): void {
    const waiting = this.#waiting
    this.#waiting = 0
    for (let index = 0; index < waiting; index += 1) {
      const decision = this.#places[index]
      if (decision) notify(this.#count, decision)
    }
  }

  /** Counts decisions immediately from now on. */
  countOneByOne(): void {
    this.countAll()
    this.#isOneByOne = true
  }
}

/** Returns the counted part of an event. The event itself would keep its request alive. */
export function countedPart(event: DecisionEvent): CountedDecision {
  const { decision, checks, route, method, policy, answeredBy, atMs, durationMs, isQueued } = event
  return { decision, checks, route, method, policy, answeredBy, atMs, durationMs, isQueued }
}
