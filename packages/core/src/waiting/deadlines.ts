import { SluiceError } from '../options/errors.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { Alarm, monotonicMs } from './timers.ts'

/**
 * A deadline, with its links in a ring. An answer removes it at once. V8 would keep the old tables
 * of a Set, and their garbage, for long.
 */
export class Deadline {
  /** Monotonic time (ms); 0 before it is in a ring. */
  dueAt = 0
  previous: Deadline = this
  next: Deadline = this

  /** Called when it has passed. Deadlines that pass at the same time share one error. */
  miss(_error: unknown): void {
    // The end of the ring is no deadline.
  }

  enter(end: Deadline): void {
    this.previous = end.previous
    this.next = end
    end.previous.next = this
    end.previous = this
  }

  leave(): void {
    this.previous.next = this.next
    this.next.previous = this.previous
    this.previous = this
    this.next = this
  }
}

/** A timer later than this (ms) means a blocked event loop: answers may be in the socket. */
const toleratedLateMs = 5

/** Deadlines of one duration. They pass in order of arrival, so one timer serves them all. */
export class Deadlines {
  readonly durationMs: number
  readonly #reason: () => Error | undefined
  /** Closes the ring: the first deadline comes after it. */
  readonly #end = new Deadline()
  readonly #alarm = new Alarm(() => this.#fire())
  #mayExtend = true

  /** @param reason returns the cause of a missing answer, if known */
  constructor(durationMs: number, reason: () => Error | undefined) {
    this.durationMs = durationMs
    this.#reason = reason
  }

  add(deadline: Deadline): void {
    deadline.dueAt = monotonicMs() + this.durationMs
    deadline.enter(this.#end)
    if (deadline.previous === this.#end) this.#alarm.within(Math.ceil(this.durationMs))
  }

  /** Returns a promise that calls `onMissed` and rejects if the deadline passes first. */
  inTime<T>(value: MaybePromise<T>, onMissed?: (error: unknown) => void): Promise<T> {
    if (!isPromise(value)) return Promise.resolve(value)
    return new Promise((resolve, reject) => {
      const deadline = new Deadline()
      deadline.miss = (error) => {
        onMissed?.(error)
        reject(error)
      }
      this.add(deadline)
      value.then(resolve, reject).finally(() => deadline.leave())
    })
  }

  /** @param error the error for all of them @default the store did not answer in time */
  missUntil(untilMs: number, error?: unknown): void {
    const missed: Deadline[] = []
    for (let first = this.#end.next; first !== this.#end; first = this.#end.next) {
      if (first.dueAt > untilMs) break
      first.leave()
      missed.push(first)
    }
    if (missed.length === 0) return
    const shared = error ?? this.#late()
    for (const deadline of missed) deadline.miss(shared)
  }

  #fire(): void {
    const first = this.#end.next
    const nowMs = monotonicMs()
    if (this.#mayExtend && first !== this.#end && nowMs - first.dueAt > toleratedLateMs) {
      this.#mayExtend = false
      this.#alarm.within(1)
      return
    }
    this.#mayExtend = true
    this.missUntil(nowMs)
    const { next } = this.#end
    if (next !== this.#end) this.#alarm.within(Math.max(1, Math.ceil(next.dueAt - monotonicMs())))
  }

  #late(): SluiceError {
    const message = `the store did not answer within ${this.durationMs} ms`
    const reason = this.#reason()
    if (!reason) return new SluiceError('SLUICE_STORE_DEADLINE', message)
    const { cause = reason } = reason
    return new SluiceError('SLUICE_STORE_DEADLINE', `${message}; ${reason.message}`, { cause })
  }
}
