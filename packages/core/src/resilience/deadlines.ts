import { SluiceError } from '../options/errors.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { startQuietTimer } from '../waiting/timers.ts'

interface DeadlineEntry {
  /** In ms of the monotonic clock. */
  dueAt: number
  /** Called when the deadline has passed. Deadlines that pass at once share one error. */
  miss(error: unknown): void
}

/**
 * The lateness (ms) beyond which a timer gives its entries one more turn: the event loop was
 * blocked, and answers may lie in the socket.
 */
const toleratedLateMs = 5

/** Deadlines of one duration. They pass in the order of arrival, so one timer serves them all. */
export class Deadlines {
  readonly durationMs: number
  readonly #reason: () => Error | undefined
  /** In the order in which they pass. */
  readonly #entries = new Set<DeadlineEntry>()
  #isTimed = false
  #mayExtend = true

  /** @param reason returns the cause of a missing answer, if it is known */
  constructor(durationMs: number, reason: () => Error | undefined) {
    this.durationMs = durationMs
    this.#reason = reason
  }

  add(entry: DeadlineEntry): void {
    entry.dueAt = monotonicMs() + this.durationMs
    this.#entries.add(entry)
    if (!this.#isTimed) this.#schedule(this.durationMs)
  }

  /** The entry was answered in time. */
  remove(entry: DeadlineEntry): void {
    this.#entries.delete(entry)
  }

  missAll(error: unknown): void {
    // A copy, since those who missed may ask again.
    for (const entry of [...this.#entries]) if (this.#entries.delete(entry)) entry.miss(error)
  }

  get #first(): DeadlineEntry | undefined {
    return this.#entries.values().next().value
  }

  #schedule(delayMs: number): void {
    this.#isTimed = true
    startQuietTimer(() => this.#fire(), Math.max(1, Math.ceil(delayMs)))
  }

  #fire(): void {
    this.#isTimed = false
    const nowMs = monotonicMs()
    const late = nowMs - (this.#first?.dueAt ?? nowMs)
    if (this.#mayExtend && late > toleratedLateMs) {
      this.#mayExtend = false
      this.#schedule(1)
      return
    }
    this.#mayExtend = true
    this.#missUntil(nowMs)
    const first = this.#first
    if (first && !this.#isTimed) this.#schedule(first.dueAt - monotonicMs())
  }

  #missUntil(nowMs: number): void {
    let error: SluiceError | undefined
    for (const entry of this.#entries) {
      if (entry.dueAt > nowMs) return
      this.#entries.delete(entry)
      error ??= this.#missed()
      entry.miss(error)
    }
  }

  #missed(): SluiceError {
    const message = `the store did not answer within ${this.durationMs} ms`
    const reason = this.#reason()
    if (!reason) return new SluiceError('SLUICE_STORE_DEADLINE', message)
    const { cause = reason } = reason
    return new SluiceError('SLUICE_STORE_DEADLINE', `${message}; ${reason.message}`, { cause })
  }
}

/** Deadlines by their duration in ms. */
export class DeadlinesByDuration extends Map<number, Deadlines> {
  readonly #lastFailure: () => Error | undefined

  /** @param lastFailure returns the cause of a missing answer, if it is known */
  constructor(lastFailure: () => Error | undefined) {
    super()
    this.#lastFailure = lastFailure
  }

  of(durationMs: number): Deadlines {
    const deadlines = this.get(durationMs) ?? new Deadlines(durationMs, this.#lastFailure)
    this.set(durationMs, deadlines)
    return deadlines
  }

  missAll(error: unknown): void {
    for (const deadlines of this.values()) deadlines.missAll(error)
  }
}

/**
 * Returns a promise with a deadline: it rejects when the deadline passes first.
 * @param onMissed called then, with the error
 */
export function inTime<T>(
  value: MaybePromise<T>,
  deadlines: Deadlines,
  onMissed: (error: unknown) => void,
): Promise<T> {
  if (!isPromise(value)) return Promise.resolve(value)
  return new Promise((resolve, reject) => {
    const entry: DeadlineEntry = {
      dueAt: 0,
      miss(error) {
        onMissed(error)
        reject(error)
      },
    }
    deadlines.add(entry)
    value.then(resolve, reject).finally(() => deadlines.remove(entry))
  })
}
