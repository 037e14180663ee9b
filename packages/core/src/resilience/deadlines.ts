import { SluiceError } from '../errors.ts'
import type { Asker } from '../store.ts'
import { monotonicMs } from './monotonic-clock.ts'

/** Every runtime has timers; those of Node can let the process end. */
declare function setTimeout(callback: () => void, delayMs: number): number | { unref?(): void }

interface Waiting {
  readonly asker: Asker
  /** By `monotonicMs`. */
  readonly dueAt: number
  miss(error: unknown): void
}

/** How late a timer may be before those who wait are given one more turn: the event loop was held up, and answers may lie in the socket. */
const toleratedLateMs = 5

/** Lets those who wait equally long go when their time is over: in their order, so that one timer serves them all. */
export class Deadlines {
  readonly #durationMs: number
  #waiting: Waiting[] = []
  #first = 0
  #isTimed = false
  #mayGrace = true

  constructor(durationMs: number) {
    this.#durationMs = durationMs
  }

  /** @param miss told, unless the asker was answered before, with one error for all whose time is over at once */
  add(asker: Asker, miss: (error: unknown) => void): void {
    this.#waiting.push({ asker, dueAt: monotonicMs() + this.#durationMs, miss })
    if (!this.#isTimed) this.#schedule(this.#durationMs)
  }

  /** Lets all go who wait now, before their time. */
  missAll(error: unknown): void {
    const waiting = this.#waiting.slice(this.#first)
    this.#waiting = []
    this.#first = 0
    for (const { asker, miss } of waiting) if (!asker.answered) miss(error)
  }

  #schedule(delayMs: number): void {
    this.#isTimed = true
    const timer = setTimeout(() => this.#fire(), Math.max(1, Math.ceil(delayMs)))
    if (typeof timer === 'object') timer.unref?.()
  }

  #fire(): void {
    this.#isTimed = false
    const nowMs = monotonicMs()
    this.#skipAnswered()
    const late = nowMs - (this.#waiting[this.#first]?.dueAt ?? nowMs)
    if (this.#mayGrace && late > toleratedLateMs) {
      this.#mayGrace = false
      this.#schedule(1)
      return
    }
    this.#mayGrace = true
    this.#missUntil(nowMs)
    this.#skipAnswered()
    const next = this.#waiting[this.#first]
    if (next && !this.#isTimed) this.#schedule(next.dueAt - monotonicMs())
  }

  #missUntil(nowMs: number): void {
    let error: SluiceError | undefined
    for (;;) {
      const waiting = this.#waiting[this.#first]
      if (!waiting || waiting.dueAt > nowMs) return
      this.#first += 1
      if (waiting.asker.answered) continue
      error ??= new SluiceError(
        'SLUICE_STORE_DEADLINE',
        `the store did not answer within ${this.#durationMs} ms`,
      )
      waiting.miss(error)
    }
  }

  #skipAnswered(): void {
    while (this.#waiting[this.#first]?.asker.answered) this.#first += 1
    if (this.#first === 0) return
    this.#waiting = this.#waiting.slice(this.#first)
    this.#first = 0
  }
}
