import { SluiceError } from '../options/errors.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { startQuietTimer } from '../waiting/timers.ts'

/**
 * An entry in a list of deadlines, with its links: V8 keeps old tables of a Set for long, and with
 * them their garbage. An entry that was answered leaves the list at once.
 */
export abstract class DeadlineEntry {
  /** Its time, in ms of the monotonic clock; 0 before it is in a list. */
  dueAt = 0
  /** The list that the entry is in; `undefined` before, and after it has left. */
  list: Deadlines | undefined = undefined
  previous: DeadlineEntry | undefined = undefined
  next: DeadlineEntry | undefined = undefined

  /** Leaves its list, if it is in one: it was answered in time. */
  leave(): void {
    this.list?.remove(this)
  }

  /** Called when the deadline has passed. Deadlines that pass at once share one error. */
  abstract miss(error: unknown): void
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
  #first: DeadlineEntry | undefined
  #last: DeadlineEntry | undefined
  #isTimed = false
  #mayExtend = true

  /** @param reason returns the cause of a missing answer, if it is known */
  constructor(durationMs: number, reason: () => Error | undefined) {
    this.durationMs = durationMs
    this.#reason = reason
  }

  add(entry: DeadlineEntry): void {
    entry.dueAt = monotonicMs() + this.durationMs
    entry.list = this
    entry.previous = this.#last
    if (this.#last) this.#last.next = entry
    else this.#first = entry
    this.#last = entry
    if (!this.#isTimed) this.#schedule(this.durationMs)
  }

  remove(entry: DeadlineEntry): void {
    const { previous, next } = entry
    if (previous) previous.next = next
    else this.#first = next
    if (next) next.previous = previous
    else this.#last = previous
    entry.previous = undefined
    entry.next = undefined
    entry.list = undefined
  }

  missAll(error: unknown): void {
    const last = this.#last
    for (let first = this.#first; first; first = this.#first) {
      this.remove(first)
      first.miss(error)
      if (first === last) return
    }
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
    if (this.#first && !this.#isTimed) this.#schedule(this.#first.dueAt - monotonicMs())
  }

  #missUntil(nowMs: number): void {
    let error: SluiceError | undefined
    for (let first = this.#first; first && first.dueAt <= nowMs; first = this.#first) {
      this.remove(first)
      error ??= this.#missed()
      first.miss(error)
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

class PromiseEntry extends DeadlineEntry {
  readonly miss: (error: unknown) => void

  constructor(miss: (error: unknown) => void) {
    super()
    this.miss = miss
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
    const entry = new PromiseEntry((error) => {
      onMissed(error)
      reject(error)
    })
    deadlines.add(entry)
    value.then(resolve, reject).finally(() => entry.leave())
  })
}
