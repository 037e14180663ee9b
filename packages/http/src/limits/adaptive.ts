import {
  invalid,
  type OptionsOf,
  objectOption,
  type RequiredOption,
  wholeNumber,
} from '@sluice/core'
import type { Report } from '../request/user-functions.ts'
import { SignalTable, smoothed } from './signal.ts'
import type { FoundLimit, LimitSource } from './source.ts'

const code = 'SLUICE_LIMIT_INVALID'

class AdaptiveTable extends SignalTable {
  /** Lowest limit: a whole number ≥ 0, less than `max`. */
  min: RequiredOption<number> = (min, option) => wholeNumber(min, { option, code }, { min: 0 })
  /** Highest limit, in quiet times: a whole number. */
  max: RequiredOption<number> = (max, option) => wholeNumber(max, { option, code }, { min: 1 })
}

export interface AdaptiveOptions extends OptionsOf<AdaptiveTable> {}

/** One step lowers the limit by at most a half, and by at least a twentieth, to have an effect. */
const steepest = 0.5
const gentlest = 0.95
/** One step raises the limit by at most a tenth of itself, and a twentieth of the range. */
const stepsUp = 20
const growth = 0.1

/** A limit that follows a signal. */
export interface AdaptiveLimit extends LimitSource {
  readonly kind: 'adaptive(…)'
  readonly declared: number
  /** The current limit, for metrics. */
  readonly current: number
  find(native: unknown, report: Report): FoundLimit
}

/**
 * A limit that follows a signal. It starts at `max`, shrinks down to `min` while the signal is
 * above its high mark, and grows again while the signal is below its low mark. A request that it
 * refuses below `max` is answered 503, since the fault is not the client's.
 * @example
 * rateLimit({ window: '1m', limit: adaptive({ signal: eventLoopDelay(), min: 100, max: 1_000 }) })
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function adaptive(options: AdaptiveOptions): AdaptiveLimit {
  const settings = objectOption(new AdaptiveTable())(options, 'adaptive')
  const { min, max } = settings
  if (min >= max) {
    throw invalid({ option: 'adaptive.min', code }, min, `less than adaptive.max (${max})`)
  }
  const maxStep = Math.ceil((max - min) / stepsUp)
  let current = max
  const owner = { where: 'adaptive', label: `adaptive({ min: ${min}, max: ${max} })` }
  const signal = smoothed(settings, owner, ({ value, idleMs }) => {
    const before = current
    current = next(value, idleMs)
    return current !== before
  })

  /** Between low and high the limit stays, so that it does not oscillate. */
  function next(value: number, idleMs: number): number {
    const { low, high, smoothingMs } = signal
    if (value > high) {
      const factor = (low + high) / 2 / value
      const share = Math.min(gentlest, Math.max(steepest, factor))
      return Math.max(min, Math.floor(current * share))
    }
    if (value >= low) return current
    // Without requests, nothing was overloaded.
    const steps = Math.max(1, Math.floor(idleMs / smoothingMs))
    let limit = current
    for (let step = 0; step < steps && limit < max; step += 1) {
      limit = Math.min(max, limit + Math.max(1, Math.min(maxStep, Math.ceil(limit * growth))))
    }
    return limit
  }

  return {
    kind: 'adaptive(…)',
    largest: max,
    declared: max,
    get current() {
      return current
    },
    find(_native, report) {
      signal.refresh(report)
      return { value: current, reduced: current < max }
    },
  }
}
