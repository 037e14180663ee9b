import {
  checkedElsewhere,
  type Duration,
  durationMs,
  durationOption,
  invalid,
  isPromise,
  type MaybePromise,
  type Option,
  type OptionsOf,
  orDefault,
  quote,
  type RequiredOption,
  type SettingsOf,
} from '@sluice/core'
import type { Report } from '../request/user-functions.ts'

/** A number that tells how busy the process, or a dependency, is: the higher, the busier. */
export interface Signal {
  /** The user's name for it. */
  readonly name: string
  /** Below it there is room for more. */
  readonly low: number
  /** Above it there is too much to do. */
  readonly high: number
  /** A number ≥ 0; `undefined`: not known yet. */
  sample(): MaybePromise<number | undefined>
}

/** A signal, and the way it is watched. */
export class SignalTable {
  /**
   * `eventLoopDelay()`, `eventLoopUtilization()`, `cpu()`, or a function that finds a number ≥ 0,
   * which needs `low` and `high`.
   */
  signal: RequiredOption<Signal | (() => MaybePromise<number>)> = (signal, option) => {
    if (isSignal(signal) || typeof signal === 'function') return signal
    const legal =
      'eventLoopDelay(), eventLoopUtilization(), cpu() or a function that finds a number'
    throw invalid({ option }, signal, legal)
  }
  /** There is room for more below it: a number ≥ 0. @default the signal's own */
  low?: Option<number> = checkedElsewhere
  /** There is too much to do above it: more than `low`. @default the signal's own */
  high?: Option<number> = checkedElsewhere
  /** Shortest time between two samples, which need requests. @default '1s' */
  interval?: Option<Duration, number> = durationOption('1s', durationMs)
  /**
   * Smoothing time. Time in which older values fade from the average of the signal. After a change,
   * nothing changes for the same time, so that the effect shows first.
   * @default three intervals
   */
  smoothing?: Option<Duration> = checkedElsewhere
}

export interface SignalOptions extends OptionsOf<SignalTable> {}

function isSignal(signal: unknown): signal is Signal {
  return typeof signal === 'object' && signal !== null && 'sample' in signal && 'low' in signal
}

function threshold(value: unknown, option: string): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
  const legal =
    'a number ≥ 0 in the unit of the signal, which a function needs; eventLoopDelay(), eventLoopUtilization() and cpu() have one'
  throw invalid({ option }, value, legal)
}

/** A reading of a signal. */
export interface Reading {
  /** The average, in which older values have faded. */
  readonly value: number
  readonly nowMs: number
  /** Time without requests before the sample, in ms. */
  readonly idleMs: number
}

/** After so many intervals without an answer it is said so. */
const patience = 10

/**
 * A signal that is asked when requests come and its interval has passed, by no timer, and never
 * again before it has answered. It is averaged over time, so that one garbage collection is no
 * overload.
 */
export class SmoothedSignal {
  readonly low: number
  readonly high: number
  readonly smoothingMs: number
  readonly #signal: Signal | (() => MaybePromise<number>)
  readonly #intervalMs: number
  readonly #where: string
  readonly #onReading: (reading: Reading) => boolean
  #value: number | undefined
  #valueMs = 0
  #sampledMs = Number.NEGATIVE_INFINITY
  #refreshedMs = 0
  #isPending = false
  #isOverdue = false
  /** For one smoothing time from here on, readings are averaged, and not passed on. */
  #heldFromMs: number | undefined

  /**
   * @param owner the user's name for the owner of the options, and the number that tells it from
   * others
   * @param onReading called with every reading, once the last change has had time to show. It
   * returns whether it changed something: earlier samples say nothing of the effect
   */
  constructor(
    { signal, low, high, interval: intervalMs, smoothing }: SettingsOf<SignalTable>,
    { where, label = where }: { where: string; label?: string },
    onReading: (reading: Reading) => boolean,
  ) {
    this.#signal = signal
    this.#where = `signal ${signal.name || 'a function'} of ${label}`
    this.#onReading = onReading
    const own = isSignal(signal) ? signal : undefined
    this.low = threshold(orDefault(low, own?.low), `${where}.low`)
    this.high = threshold(orDefault(high, own?.high), `${where}.high`)
    if (this.low >= this.high) {
      const legal = `more than ${where}.low (${this.low})`
      throw invalid({ option: `${where}.high` }, this.high, legal)
    }
    this.#intervalMs = intervalMs
    this.smoothingMs = durationMs(orDefault(smoothing, 3 * intervalMs), `${where}.smoothing`)
  }

  /** Asks the signal, where that is due. */
  refresh(report: Report): void {
    const nowMs = Date.now()
    const idleMs = nowMs - this.#refreshedMs
    this.#refreshedMs = nowMs
    const elapsedMs = nowMs - this.#sampledMs
    // A clock that was set back would hold up the next sample for as long.
    if (elapsedMs >= 0 && elapsedMs < this.#intervalMs) return
    if (this.#isPending) this.#complain(elapsedMs, report)
    else this.#sample({ nowMs, idleMs: Math.max(0, idleMs) }, report)
  }

  #sample(at: Omit<Reading, 'value'>, report: Report): void {
    this.#sampledMs = at.nowMs
    this.#isOverdue = false
    const fail = (error: unknown): void => {
      const reason = error instanceof Error ? error.message : error
      this.#reject(`threw: ${quote(reason)}`, report)
    }
    try {
      const signal = this.#signal
      const sample: MaybePromise<unknown> = isSignal(signal) ? signal.sample() : signal()
      if (!isPromise(sample)) {
        this.#take(sample, at, report)
        return
      }
      this.#isPending = true
      sample.then(
        (value) => {
          this.#isPending = false
          this.#take(value, { ...at, nowMs: Date.now() }, report)
        },
        (error) => {
          this.#isPending = false
          fail(error)
        },
      )
    } catch (error) {
      fail(error)
    }
  }

  #take(sample: unknown, { nowMs, idleMs }: Omit<Reading, 'value'>, report: Report): void {
    // A signal of ours may not know yet.
    if (sample === undefined && isSignal(this.#signal)) return
    if (typeof sample !== 'number' || !Number.isFinite(sample) || sample < 0) {
      this.#reject(`must yield a number ≥ 0, but yielded ${quote(sample)}`, report)
      return
    }
    const value = this.#averaged(sample, nowMs)
    this.#value = value
    this.#valueMs = nowMs
    this.#heldFromMs ??= nowMs
    const heldMs = nowMs - this.#heldFromMs
    // A clock that was set back must not put off the end of it.
    if (heldMs >= 0 && heldMs < this.smoothingMs) return
    if (!this.#onReading({ value, nowMs, idleMs })) return
    this.#value = undefined
    this.#heldFromMs = nowMs
  }

  /** Weighted by time, so that it does not matter how often there were requests to ask on. */
  #averaged(sample: number, nowMs: number): number {
    if (this.#value === undefined) return sample
    const elapsedMs = Math.max(0, nowMs - this.#valueMs)
    const faded = Math.exp(-elapsedMs / this.smoothingMs)
    return sample + (this.#value - sample) * faded
  }

  #complain(elapsedMs: number, report: Report): void {
    if (this.#isOverdue || elapsedMs < patience * this.#intervalMs) return
    this.#isOverdue = true
    const reason = `has not answered for ${elapsedMs} ms, and is not asked again before it has`
    this.#reject(reason, report)
  }

  #reject(reason: string, report: Report): void {
    report(
      'SLUICE_SIGNAL_INVALID',
      this.#where,
      `${reason}; all stays as it is meanwhile. Mend the function, or have it yield its last number`,
    )
  }
}
