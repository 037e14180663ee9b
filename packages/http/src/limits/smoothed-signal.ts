import { isPromise, type MaybePromise, show } from '@sluice/core'
import type { Report } from '../guard/report.ts'
import { type SignalOptions, type SignalSetup, setUpSignal } from './signal.ts'

/** What a signal has come to. */
export interface Reading {
  /** The average, in which older values have faded. */
  readonly value: number
  readonly nowMs: number
  /** How long nobody had asked before it was sampled: there were no requests. */
  readonly idleMs: number
}

/** After so many intervals without an answer it is said so. */
const patience = 10

/**
 * A signal that is asked when requests come and its interval has passed, by no timer, and never again before it has answered. It is
 * averaged over time, so that one garbage collection is no overload.
 */
export class SmoothedSignal {
  readonly low: number
  readonly high: number
  readonly smoothingMs: number
  readonly #signal: SignalSetup
  readonly #where: string
  readonly #onReading: (reading: Reading) => void
  #value: number | undefined
  #valueMs = 0
  /** When it was asked last. */
  #sampledMs = Number.NEGATIVE_INFINITY
  #refreshedMs = 0
  #isPending = false
  #isOverdue = false
  /** Meanwhile readings are taken in, and nobody is told. */
  #hold: { readonly fromMs: number; readonly untilMs: number } | undefined

  /**
   * @param owner what the user calls what the options are of, and how it is told from others
   * @param onReading told of every reading, once the last change has had time to show
   */
  constructor(
    options: SignalOptions,
    { where, label = where }: { where: string; label?: string },
    onReading: (reading: Reading) => void,
  ) {
    this.#signal = setUpSignal(options, where)
    this.#where = `signal ${this.#signal.name} of ${label}`
    this.#onReading = onReading
    this.low = this.#signal.low
    this.high = this.#signal.high
    this.smoothingMs = this.#signal.smoothingMs
  }

  /** Asks the signal, where that is due. */
  refresh(report: Report): void {
    const nowMs = Date.now()
    const idleMs = nowMs - this.#refreshedMs
    this.#refreshedMs = nowMs
    const elapsedMs = nowMs - this.#sampledMs
    // A clock that was set back would hold up the next sample for as long.
    if (elapsedMs >= 0 && elapsedMs < this.#signal.intervalMs) return
    if (this.#isPending) this.#complain(elapsedMs, report)
    else this.#sample({ nowMs, idleMs: Math.max(0, idleMs) }, report)
  }

  /** What was read before a change says nothing of what comes after it. */
  restart(nowMs: number, holdMs: number = this.smoothingMs): void {
    this.#value = undefined
    this.#hold = { fromMs: nowMs, untilMs: nowMs + holdMs }
  }

  #sample(at: Omit<Reading, 'value'>, report: Report): void {
    this.#sampledMs = at.nowMs
    try {
      const sample: MaybePromise<unknown> = this.#signal.sample()
      if (!isPromise(sample)) {
        this.#take(sample, at, report)
        return
      }
      this.#isPending = true
      const answered = (): number => {
        this.#isPending = false
        this.#isOverdue = false
        return Date.now()
      }
      sample.then(
        (value) => this.#take(value, { ...at, nowMs: answered() }, report),
        (error: unknown) => {
          answered()
          this.#reject(thrown(error), report)
        },
      )
    } catch (error) {
      this.#reject(thrown(error), report)
    }
  }

  #take(sample: unknown, { nowMs, idleMs }: Omit<Reading, 'value'>, report: Report): void {
    if (sample === undefined && this.#signal.isReady) return
    if (typeof sample !== 'number' || !Number.isFinite(sample) || sample < 0) {
      this.#reject(`must yield a number ≥ 0, but yielded ${show(sample)}`, report)
      return
    }
    const value = this.#averaged(sample, nowMs)
    this.#value = value
    this.#valueMs = nowMs
    this.#hold ??= { fromMs: nowMs, untilMs: nowMs + this.smoothingMs }
    const { fromMs, untilMs } = this.#hold
    // A clock that was set back must not put off the end of it.
    if (nowMs >= untilMs || nowMs < fromMs) this.#onReading({ value, nowMs, idleMs })
  }

  /** Weighted by time, so that it does not matter how often there were requests to ask on. */
  #averaged(sample: number, nowMs: number): number {
    if (this.#value === undefined) return sample
    const elapsedMs = Math.max(0, nowMs - this.#valueMs)
    const faded = Math.exp(-elapsedMs / this.smoothingMs)
    return sample + (this.#value - sample) * faded
  }

  #complain(elapsedMs: number, report: Report): void {
    if (this.#isOverdue || elapsedMs < patience * this.#signal.intervalMs) return
    this.#isOverdue = true
    this.#reject(
      `has not answered for ${elapsedMs} ms, and is not asked again before it has`,
      report,
    )
  }

  #reject(reason: string, report: Report): void {
    report(
      'SLUICE_SIGNAL_INVALID',
      this.#where,
      `${reason}; all stays as it is meanwhile. Mend the function, or have it yield its last number`,
    )
  }
}

function thrown(error: unknown): string {
  return `threw: ${error instanceof Error ? show(error.message) : show(error)}`
}
