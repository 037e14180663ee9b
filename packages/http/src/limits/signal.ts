import { type Duration, durationMs, given, invalid, type MaybePromise } from '@sluice/core'

/** A number that tells how busy the process is, or something that it depends on: the higher, the busier. */
export interface Signal {
  /** What a user calls it. */
  readonly name: string
  /** Below it there is room for more. */
  readonly low: number
  /** Above it there is too much to do. */
  readonly high: number
  /** A number ≥ 0; `undefined`: not known yet. */
  sample(): MaybePromise<number | undefined>
}

/** What is watched, and how. */
export interface SignalOptions {
  /** `eventLoopDelay()`, `eventLoopUtilization()`, `cpu()`, or a function that finds a number ≥ 0, which needs `low` and `high`. */
  signal: Signal | (() => MaybePromise<number>)
  /** Below it there is room for more, in the unit of the signal: a number ≥ 0. @default the signal's own */
  low?: number
  /** Above it there is too much to do, in the unit of the signal: more than `low`. @default the signal's own */
  high?: number
  /** How often the signal is asked, at most; only while there are requests. @default '1s' */
  interval?: Duration
  /**
   * What is judged is the average of the signal, in which older values fade within about this time; and for as long nothing changes
   * after a change, so that its effect is seen first.
   * @default three intervals
   */
  smoothing?: Duration
}

export const signalFields: readonly (keyof SignalOptions)[] = [
  'signal',
  'low',
  'high',
  'interval',
  'smoothing',
]

/** The checked options, with the defaults filled in. */
export interface SignalSetup extends Omit<Signal, 'sample'> {
  readonly sample: () => MaybePromise<unknown>
  /** Whether it is a signal of ours, which may not know yet. */
  readonly isReady: boolean
  readonly intervalMs: number
  readonly smoothingMs: number
}

/** @throws SluiceError that names the option and the fix */
export function setUpSignal(options: SignalOptions, where: string): SignalSetup {
  const { signal } = options
  if (!isSignal(signal) && typeof signal !== 'function') {
    const legal =
      'eventLoopDelay(), eventLoopUtilization(), cpu() or a function that finds a number'
    throw invalid({ option: `${where}.signal` }, signal, legal)
  }
  const own = isSignal(signal) ? signal : undefined
  const low = threshold(given(options.low, own?.low), `${where}.low`)
  const high = threshold(given(options.high, own?.high), `${where}.high`)
  if (low >= high)
    throw invalid({ option: `${where}.high` }, high, `more than ${where}.low (${low})`)
  const intervalMs = durationMs(given(options.interval, '1s'), `${where}.interval`)
  return {
    name: signal.name || 'a function',
    low,
    high,
    sample: isSignal(signal) ? () => signal.sample() : signal,
    isReady: own !== undefined,
    intervalMs,
    smoothingMs: durationMs(given(options.smoothing, 3 * intervalMs), `${where}.smoothing`),
  }
}

function isSignal(signal: unknown): signal is Signal {
  return typeof signal === 'object' && signal !== null && 'sample' in signal && 'low' in signal
}

function threshold(value: unknown, option: string): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
  const legal =
    'a number ≥ 0 in the unit of the signal, which a function needs; eventLoopDelay(), eventLoopUtilization() and cpu() have one'
  throw invalid({ option }, value, legal)
}
