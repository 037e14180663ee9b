import { type DecisionEvent, notify } from '@sluice/core'

/** The most decisions that wait to be counted. */
const maxWaiting = 128

/** The part of an event that is counted. */
export type CountedDecision = Omit<DecisionEvent, 'request' | 'key' | 'digest'>

/**
 * Decisions that wait to be counted together. Between two decisions a process does so much else
 * that the counts have left the caches of the CPU: one by one, they cost twice as much.
 */
export class DecisionBatch {
  readonly #count: (decision: CountedDecision) => void
  /** The places of decisions, which are used again and again. */
  readonly #places: WaitingDecision[] = []
  #waiting = 0
  #isOneByOne = false

  /** @param count what it throws is reported once as a warning */
  constructor(count: (decision: CountedDecision) => void) {
    this.#count = count
  }

  add(event: CountedDecision): void {
    if (this.#isOneByOne) {
      this.#count(event)
      return
    }
    const place = this.#places[this.#waiting]
    if (place) place.take(event)
    else this.#places.push(new WaitingDecision(event))
    this.#waiting += 1
    if (this.#waiting === maxWaiting) this.countAll()
  }

  /** Counts all that wait: before anything is read. */
  countAll(): void {
    const waiting = this.#waiting
    this.#waiting = 0
    for (let index = 0; index < waiting; index += 1) {
      const decision = this.#places[index]
      if (decision) notify(this.#count, decision)
    }
  }

  /** Has decisions counted at once from now on. */
  countOneByOne(): void {
    this.countAll()
    this.#isOneByOne = true
  }
}

/** The counted part of an event. The event itself would keep its request alive. */
class WaitingDecision implements CountedDecision {
  decision: CountedDecision['decision']
  checks: CountedDecision['checks']
  route: string | undefined
  method: string | undefined
  policy: CountedDecision['policy']
  answeredBy: string
  atMs: number | undefined
  durationMs: number
  isQueued: boolean

  constructor(event: CountedDecision) {
    this.decision = event.decision
    this.checks = event.checks
    this.route = event.route
    this.method = event.method
    this.policy = event.policy
    this.answeredBy = event.answeredBy
    this.atMs = event.atMs
    this.durationMs = event.durationMs
    this.isQueued = event.isQueued
  }

  take(event: CountedDecision): void {
    this.decision = event.decision
    this.checks = event.checks
    this.route = event.route
    this.method = event.method
    this.policy = event.policy
    this.answeredBy = event.answeredBy
    this.atMs = event.atMs
    this.durationMs = event.durationMs
    this.isQueued = event.isQueued
  }
}
