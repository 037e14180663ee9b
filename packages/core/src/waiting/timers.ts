import { durationMs } from '../options/duration.ts'
import { invalid } from '../options/options.ts'

/** Every runtime has timers; Node's can let the process exit. */
declare function setTimeout(callback: () => void, delayMs: number): number | { unref?(): void }
declare function clearTimeout(timer: unknown): void
declare const performance: { now(): number }

/** Milliseconds of a clock that never steps, from an arbitrary start. */
export function monotonicMs(): number {
  return performance.now()
}

/** A moment by both clocks of this process, in ms. */
export interface Moment {
  /** A clock that never steps, and that may stand still while the machine is suspended. */
  readonly monotonicMs: number
  readonly wallMs: number
}

export function momentNow(): Moment {
  return { monotonicMs: monotonicMs(), wallMs: Date.now() }
}

export function later(moment: Moment, ms: number): Moment {
  return { monotonicMs: moment.monotonicMs + ms, wallMs: moment.wallMs + ms }
}

export function hasPassed(end: Moment, now: Moment): boolean {
  return now.monotonicMs >= end.monotonicMs || now.wallMs >= end.wallMs
}

/** The part of an `AbortSignal` that waits need; every runtime has one. */
export interface StopSignal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** Maximum delay of a timer (ms). Longer ones overflow and fire at once. */
export const maxTimerMs: number = 2 ** 31 - 1

/**
 * Starts the global timer, which tests can fake. Returns a function that stops it.
 * @param isQuiet whether the process may exit before it fires
 */
export function startTimer(callback: () => void, delayMs: number, isQuiet = false): () => void {
  const timer = setTimeout(callback, Math.min(delayMs, maxTimerMs))
  if (isQuiet && typeof timer === 'object') timer.unref?.()
  return () => clearTimeout(timer)
}

/** One timer for many purposes: it fires at the earliest requested time. */
export class Alarm {
  readonly #ring: () => void
  readonly #isQuiet: boolean
  #stop: (() => void) | undefined
  #atMs = Number.POSITIVE_INFINITY

  /** @param isQuiet whether the process may exit before it fires */
  constructor(ring: () => void, isQuiet = true) {
    this.#ring = ring
    this.#isQuiet = isQuiet
  }

  within(delayMs: number): void {
    const atMs = monotonicMs() + delayMs
    if (atMs >= this.#atMs) return
    this.stop()
    this.#atMs = atMs
    const ring = () => {
      this.stop()
      this.#ring()
    }
    this.#stop = startTimer(ring, delayMs, this.#isQuiet)
  }

  stop(): void {
    this.#stop?.()
    this.#atMs = Number.POSITIVE_INFINITY
  }
}

/**
 * Checks an option that is a timer delay. Returns milliseconds.
 * @throws SluiceError if it is not a duration, or is too long for a timer
 */
export function timerMs(value: unknown, option: string): number {
  const valueMs = durationMs(value, option)
  if (valueMs <= maxTimerMs) return valueMs
  throw invalid({ option }, value, "at most '24d'")
}

/**
 * Waits.
 * @param signal ends the wait early; the promise then resolves too
 */
export function sleep(delayMs: number, signal?: StopSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve()
      return
    }
    const wake = (): void => {
      stop()
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const stop = startTimer(wake, delayMs)
    signal?.addEventListener('abort', wake)
  })
}

/**
 * Waits at most `timeoutMs` for work. Late work is not stopped, and its result is dropped.
 * @param late called when the time is up; the promise rejects with its result
 */
export function withDeadline<T>(
  work: Promise<T>,
  timeoutMs: number,
  late: () => unknown,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = startTimer(() => reject(late()), timeoutMs)
    work.then(resolve, reject).finally(stop)
  })
}

/** Resolves to whether work has settled within `timeoutMs`. Never rejects. */
export function endsWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const ended = work.then(
    () => true,
    () => true,
  )
  return withDeadline(ended, timeoutMs, () => undefined).catch(() => false)
}
