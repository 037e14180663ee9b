import {
  invalid,
  type OptionsOf,
  objectOption,
  type RequiredOption,
  wholeNumber,
} from '@sluice/core'
import type { Report } from '../request/user-functions.ts'
import { type Reading, SignalTable, SmoothedSignal } from './signal.ts'
import type { FoundLimit, LimitSource } from './source.ts'

const code = 'SLUICE_LIMIT_INVALID'

class AdaptiveTable extends SignalTable {
  /** The limit that is always left: a whole number ≥ 0, less than `max`. */
  min: RequiredOption<number> = (min, option) => wholeNumber(min, { option, code }, { min: 0 })
  /** The limit in quiet times: a whole number. */
  max: RequiredOption<number> = (max, option) => wholeNumber(max, { option, code }, { min: 1 })
}

export interface AdaptiveOptions extends OptionsOf<AdaptiveTable> {}

/** One change takes half of the limit at most, and a twentieth at least, to have an effect. */
const steepest = 0.5
const gentlest = 0.95
/** One step grows the limit by a tenth of itself, and a twentieth of the range, at most. */
const stepsUp = 20
const growth = 0.1

/** A limit that follows a signal. */
export class AdaptiveLimit implements LimitSource {
  readonly kind = 'adaptive(…)'
  readonly largest: number
  readonly declared: number
  readonly #signal: SmoothedSignal
  readonly #min: number
  readonly #step: number
  #current: number

  /** @throws SluiceError that names the option and the fix */
  constructor(options: AdaptiveOptions) {
    const settings = objectOption(new AdaptiveTable())(options, 'adaptive')
    const { min, max } = settings
    if (min >= max) {
      throw invalid({ option: 'adaptive.min', code }, min, `less than adaptive.max (${max})`)
    }
    this.#min = min
    this.#step = Math.ceil((max - min) / stepsUp)
    this.#current = max
    this.largest = max
    this.declared = max
    const owner = { where: 'adaptive', label: `adaptive({ min: ${min}, max: ${max} })` }
    this.#signal = new SmoothedSignal(settings, owner, (reading) => this.#follow(reading))
  }

  /** The limit now, for metrics. */
  get current(): number {
    return this.#current
  }

  find(_native: unknown, report: Report): FoundLimit {
    this.#signal.refresh(report)
    return { value: this.#current, reduced: this.#current < this.declared }
  }

  #follow({ value, idleMs }: Reading): boolean {
    const before = this.#current
    this.#current = this.#next(value, idleMs)
    return this.#current !== before
  }

  /** Between low and high it stays: a limit within the band cannot begin to swing. */
  #next(value: number, idleMs: number): number {
    const { low, high, smoothingMs } = this.#signal
    if (value > high) {
      const factor = (low + high) / 2 / value
      const share = Math.min(gentlest, Math.max(steepest, factor))
      return Math.max(this.#min, Math.floor(this.#current * share))
    }
    if (value >= low) return this.#current
    // Without requests, nothing was overloaded either.
    const steps = Math.max(1, Math.floor(idleMs / smoothingMs))
    let next = this.#current
    for (let step = 0; step < steps && next < this.declared; step += 1) next = this.#grown(next)
    return next
  }

  #grown(limit: number): number {
    const step = Math.min(this.#step, Math.ceil(limit * growth))
    return Math.min(this.declared, limit + Math.max(1, step))
  }
}

/**
 * A limit that follows a signal. It starts at `max`, shrinks down to `min` while the signal is
 * above its high mark, and grows again while the signal is below its low mark. A request that it
 * refuses below `max` is answered 503, since the fault is not the client's.
 * @example
 * rateLimit({ window: '1m', limit: adaptive({ signal: eventLoopDelay(), min: 100, max: 1_000 }) })
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function adaptive(options: AdaptiveOptions): AdaptiveLimit {
  return new AdaptiveLimit(options)
}
