import type { Ask, Cancellation, Check, ControlCall, Outcome, StoreOp } from '@sluice/core'

/** The parts of a promised ask. */
export interface AskParts {
  readonly op: StoreOp
  readonly checks: readonly Check[]
  readonly keys: readonly string[]
  /** Cancellation flag of the limiter, if it gives one. */
  readonly cancellation: Cancellation | undefined
}

/** An ask of a caller that waits for a promise. */
export class PromisedAsk implements Ask {
  readonly op: StoreOp
  checks: readonly Check[]
  keys: readonly string[]
  readonly control: ControlCall | undefined
  readonly outcomes: Promise<readonly Outcome[]>
  readonly #cancellation: Cancellation | undefined
  #resolve: (outcomes: readonly Outcome[]) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined

  constructor({ op, checks, keys, cancellation }: AskParts) {
    this.op = op
    this.checks = checks
    this.keys = keys
    this.control = cancellation?.control
    this.#cancellation = cancellation
    this.outcomes = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  get isUnwanted(): boolean {
    return this.#cancellation?.isUnwanted ?? false
  }

  settle(outcomes: readonly Outcome[]): void {
    this.#resolve(outcomes)
  }

  fail(error: unknown): void {
    this.#reject(error)
  }
}
