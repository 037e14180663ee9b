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
import { caught, type Report } from '../request/user-functions.ts'

/** A measure of how busy the process or a dependency is: the higher, the busier. */
export interface Signal {
  /** Its name in the options. */
  readonly name: string
  /** Below this value there is room for more. */
  readonly low: number
  /** Above this value there is too much load. */
  readonly high: number
  /** Returns a number ≥ 0; `undefined` if not known yet. */
  sample(): MaybePromise<number | undefined>
}

/** A signal and how to sample it. */
export class SignalTable {
  /**
   * `eventLoopDelay()`, `eventLoopUtilization()`, `cpu()`, or, with `low` and `high`, a function
   * that returns a number ≥ 0.
   */
  signal: RequiredOption<Signal | (() => MaybePromise<number>)> = (signal, option) => {
    if (isSignal(signal) || typeof signal === 'function') return signal
    const legal =
      'eventLoopDelay(), eventLoopUtilization(), cpu() or a function that returns a number'
    throw invalid({ option }, signal, legal)
  }
  /** Signal value below which there is room for more: a number ≥ 0. @default the signal's own */
  low?: Option<number> = checkedElsewhere
  /** Signal value above which the load is too high: more than `low`. @default the signal's own */
  high?: Option<number> = checkedElsewhere
  /** Shortest time between two samples. Only requests trigger a sample. @default '1s' */
  interval?: Option<Duration, number> = durationOption('1s', durationMs)
  /**
   * Time constant of the signal's moving average. Changes are at least this far apart, so that each
   * takes effect before the next.
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
    'a number ≥ 0 in the unit of the signal (only eventLoopDelay(), eventLoopUtilization() and cpu() have a default)'
  throw invalid({ option }, value, legal)
}

export interface Reading {
  /** The moving average. */
  readonly value: number
  readonly nowMs: number
  /** Time without requests before the sample, in ms. */
  readonly idleMs: number
}

/** Number of intervals without a value after which this is reported. */
const patience = 10

export interface SmoothedSignal {
  readonly low: number
  readonly high: number
  readonly smoothingMs: number
  /** Reads the signal if it is due. */
  refresh(report: Report): void
}

/**
 * Samples a signal when a request arrives and the interval has passed. It uses no timer, and never
 * reads again before the last read has finished. Values are averaged over time, so that one garbage
 * collection is not an overload.
 * @param owner the name of the options in messages, and a number that makes it unique
 * @param onReading called with every reading, once the last change has had time to take effect. It
 * returns whether it changed anything; if so, earlier samples are dropped
 */
export function smoothed(
  settings: SettingsOf<SignalTable>,
  { where, label = where }: { where: string; label?: string },
  onReading: (reading: Reading) => boolean,
): SmoothedSignal {
  const { signal, interval: intervalMs } = settings
  const own = isSignal(signal) ? signal : undefined
  const low = threshold(orDefault(settings.low, own?.low), `${where}.low`)
  const high = threshold(orDefault(settings.high, own?.high), `${where}.high`)
  if (low >= high) {
    throw invalid({ option: `${where}.high` }, high, `more than ${where}.low (${low})`)
  }
  const smoothing = orDefault(settings.smoothing, 3 * intervalMs)
  const smoothingMs = durationMs(smoothing, `${where}.smoothing`)
  let average: number | undefined
  let averageMs = 0
  let sampledMs = Number.NEGATIVE_INFINITY
  let refreshedMs = 0
  let isPending = false
  let isOverdue = false
  /** Start of a time constant in which readings are averaged but not reported. */
  let heldFromMs: number | undefined

  function sample(at: Omit<Reading, 'value'>, report: Report): void {
    sampledMs = at.nowMs
    isOverdue = false
    const fail = (error: unknown): void => {
      isPending = false
      reject(`threw: ${quote(error instanceof Error ? error.message : error)}`, report)
    }
    void caught(() => {
      const found: MaybePromise<unknown> = isSignal(signal) ? signal.sample() : signal()
      if (!isPromise(found)) return take(found, at, report)
      isPending = true
      return found.then((value) => {
        isPending = false
        take(value, { ...at, nowMs: Date.now() }, report)
      })
    }, fail)
  }

  function take(found: unknown, { nowMs, idleMs }: Omit<Reading, 'value'>, report: Report): void {
    // A built-in signal may have no value yet.
    if (found === undefined && own) return
    if (typeof found !== 'number' || !Number.isFinite(found) || found < 0) {
      reject(`must return a number ≥ 0, but returned ${quote(found)}`, report)
      return
    }
    const value = averaged(found, nowMs)
    average = value
    averageMs = nowMs
    heldFromMs ??= nowMs
    const heldMs = nowMs - heldFromMs
    // A clock that was set back must not postpone its end.
    if (heldMs >= 0 && heldMs < smoothingMs) return
    if (!onReading({ value, nowMs, idleMs })) return
    average = undefined
    heldFromMs = nowMs
  }

  /** Weighted by time, so that the rate of requests does not matter. */
  function averaged(found: number, nowMs: number): number {
    if (average === undefined) return found
    const elapsedMs = Math.max(0, nowMs - averageMs)
    return found + (average - found) * Math.exp(-elapsedMs / smoothingMs)
  }

  function complain(elapsedMs: number, report: Report): void {
    if (isOverdue || elapsedMs < patience * intervalMs) return
    isOverdue = true
    reject(`has not returned for ${elapsedMs} ms, and is not called again until it does`, report)
  }

  function reject(reason: string, report: Report): void {
    report(
      'SLUICE_SIGNAL_INVALID',
      `signal ${signal.name || 'a function'} of ${label}`,
      `${reason}; limits stay as they are until then. Fix the function, or return the last value`,
    )
  }

  return {
    low,
    high,
    smoothingMs,
    refresh(report) {
      const nowMs = Date.now()
      const idleMs = nowMs - refreshedMs
      refreshedMs = nowMs
      const elapsedMs = nowMs - sampledMs
      // A clock that was set back would delay the next sample.
      if (elapsedMs >= 0 && elapsedMs < intervalMs) return
      if (isPending) complain(elapsedMs, report)
      else sample({ nowMs, idleMs: Math.max(0, idleMs) }, report)
    },
  }
}
