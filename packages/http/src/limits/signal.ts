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
   * `eventLoopDelay()`, `eventLoopUtilization()`, `cpu()`, or, with `low` and `high`, a function
   * that returns a number ≥ 0.
   */
  signal: RequiredOption<Signal | (() => MaybePromise<number>)> = (signal, option) => {
    if (isSignal(signal) || typeof signal === 'function') return signal
    const legal =
      'eventLoopDelay(), eventLoopUtilization(), cpu() or a function that finds a number'
    throw invalid({ option }, signal, legal)
  }
  /** Signal value below which there is room for more: a number ≥ 0. @default the signal's own */
  low?: Option<number> = checkedElsewhere
  /** Signal value above which the load is too high: more than `low`. @default the signal's own */
  high?: Option<number> = checkedElsewhere
  /** Shortest time between two samples. Only requests trigger a sample. @default '1s' */
  interval?: Option<Duration, number> = durationOption('1s', durationMs)
  /**
   * Time over which older values fade from the average of the signal. Changes are at least this far
   * apart, so that each takes effect before the next.
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

export interface Reading {
  /** The average, in which older values have faded. */
  readonly value: number
  readonly nowMs: number
  /** Time without requests before the sample, in ms. */
  readonly idleMs: number
}

/** After so many intervals without an answer it is said so. */
const patience = 10

export interface SmoothedSignal {
  readonly low: number
  readonly high: number
  readonly smoothingMs: number
  /** Asks the signal, where that is due. */
  refresh(report: Report): void
}

/**
 * A signal that is asked when requests come and its interval has passed, by no timer, and never
 * again before it has answered. It is averaged over time, so that one garbage collection is no
 * overload.
 * @param owner the user's name for the owner of the options, and the number that tells it from
 * others
 * @param onReading called with every reading, once the last change has had time to show. It
 * returns whether it changed something: earlier samples say nothing of the effect
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
  /** For one smoothing time from here on, readings are averaged, and not passed on. */
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
    // A signal of ours may not know yet.
    if (found === undefined && own) return
    if (typeof found !== 'number' || !Number.isFinite(found) || found < 0) {
      reject(`must yield a number ≥ 0, but yielded ${quote(found)}`, report)
      return
    }
    const value = averaged(found, nowMs)
    average = value
    averageMs = nowMs
    heldFromMs ??= nowMs
    const heldMs = nowMs - heldFromMs
    // A clock that was set back must not put off the end of it.
    if (heldMs >= 0 && heldMs < smoothingMs) return
    if (!onReading({ value, nowMs, idleMs })) return
    average = undefined
    heldFromMs = nowMs
  }

  /** Weighted by time, so that it does not matter how often there were requests to ask on. */
  function averaged(found: number, nowMs: number): number {
    if (average === undefined) return found
    const elapsedMs = Math.max(0, nowMs - averageMs)
    return found + (average - found) * Math.exp(-elapsedMs / smoothingMs)
  }

  function complain(elapsedMs: number, report: Report): void {
    if (isOverdue || elapsedMs < patience * intervalMs) return
    isOverdue = true
    reject(`has not answered for ${elapsedMs} ms, and is not asked again before it has`, report)
  }

  function reject(reason: string, report: Report): void {
    report(
      'SLUICE_SIGNAL_INVALID',
      `signal ${signal.name || 'a function'} of ${label}`,
      `${reason}; all stays as it is meanwhile. Mend the function, or have it yield its last number`,
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
      // A clock that was set back would hold up the next sample for as long.
      if (elapsedMs >= 0 && elapsedMs < intervalMs) return
      if (isPending) complain(elapsedMs, report)
      else sample({ nowMs, idleMs: Math.max(0, idleMs) }, report)
    },
  }
}
