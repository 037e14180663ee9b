import type { BreakerState } from '../model/resilience-event.ts'

/** Incidents that open it: batches that failed, or moments at which deadlines passed. */
const leastIncidents = 3
/** They have to come in a row, or to be this share of the last checks, if there were enough. */
const failureRate = 0.5
const leastChecks = 20
const rateWindowMs = 10_000
/** The first wait before a probe, and the longest: it doubles with each probe that fails. */
const firstRetryMs = 500
const longestRetryMs = 2_000
/** Waits are up to this share shorter, so that the processes of a fleet do not probe at once. */
const jitter = 0.5

/** The checks of a window. */
class Counts {
  checks = 0
  failed = 0
  incidents = 0
}

/**
 * Keeps requests from waiting for a store that does not answer. It has no clock: the caller tells
 * the time, in ms of a clock that never steps.
 */
export class CircuitBreaker {
  #state: BreakerState = 'closed'
  #inRow = 0
  #lastIncident: unknown
  #reopenings = 0
  #retryAt = 0
  #windowStartMs = Number.NEGATIVE_INFINITY
  #counts = new Counts()
  #countsBefore = new Counts()

  get state(): BreakerState {
    return this.#state
  }

  /** True when the last event of the store was an answer. */
  get isSound(): boolean {
    return this.#state === 'closed' && this.#inRow === 0
  }

  /** Time of the next probe. */
  get retryAt(): number {
    return this.#retryAt
  }

  /**
   * Tells whether a request may ask the store, as a probe. The caller has to report the end of the
   * probe, with `succeed`, `fail` or `withdraw`.
   */
  probe(nowMs: number): boolean {
    if (this.#state !== 'open' || nowMs < this.#retryAt) return false
    this.#state = 'half-open'
    return true
  }

  /** The way to the store is open again: the next request is a probe. */
  retryNow(): void {
    this.#retryAt = 0
  }

  /** A probe that did not reach the store after all: the next request tries again. */
  withdraw(): void {
    if (this.#state === 'half-open') this.#state = 'open'
  }

  /** The store answered. Returns whether that closed the breaker. */
  succeed(nowMs: number): boolean {
    if (this.#state === 'open') return false
    const isProbe = this.#state === 'half-open'
    this.#state = 'closed'
    this.#inRow = 0
    if (!isProbe) this.#countsAt(nowMs).checks += 1
    return isProbe
  }

  /**
   * The store failed a check. Returns whether that opened the breaker.
   * @param incident what failures have in common that count as one, such as the error of a batch
   */
  fail(nowMs: number, incident: unknown): boolean {
    if (this.#state === 'open') return false
    if (this.#state === 'half-open') this.#reopenings += 1
    else if (!this.#isOneTooMany(nowMs, incident)) return false
    const waitMs = Math.min(longestRetryMs, firstRetryMs * 2 ** this.#reopenings)
    this.#retryAt = nowMs + waitMs * (1 - jitter * Math.random())
    this.#state = 'open'
    this.#inRow = 0
    this.#counts = new Counts()
    this.#countsBefore = new Counts()
    return true
  }

  /** The store has been well for a while: the next outage begins with short waits again. */
  recover(): void {
    this.#reopenings = 0
  }

  /** Judges the incidents in a row, and the last one to two windows. */
  #isOneTooMany(nowMs: number, incident: unknown): boolean {
    const isNew = typeof incident !== 'object' || incident !== this.#lastIncident
    this.#lastIncident = incident
    const now = this.#countsAt(nowMs)
    now.checks += 1
    now.failed += 1
    if (isNew) {
      now.incidents += 1
      this.#inRow += 1
    }
    if (this.#inRow >= leastIncidents) return true
    const before = this.#countsBefore
    const checks = now.checks + before.checks
    const isMost = now.failed + before.failed >= failureRate * checks
    return isMost && checks >= leastChecks && now.incidents + before.incidents >= leastIncidents
  }

  #countsAt(nowMs: number): Counts {
    const elapsedMs = nowMs - this.#windowStartMs
    if (elapsedMs >= rateWindowMs) {
      this.#countsBefore = elapsedMs < 2 * rateWindowMs ? this.#counts : new Counts()
      this.#counts = new Counts()
      this.#windowStartMs = nowMs
    }
    return this.#counts
  }
}
