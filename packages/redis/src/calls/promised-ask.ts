import type { Ask, Cancellation, Check, ControlCall, Outcome, StoreOp } from '@sluice/core'

/** An ask of a caller that waits for a promise. */
export class PromisedAsk implements Ask {
  readonly op: StoreOp
  checks: readonly Check[]
  keys: readonly string[]
  readonly outcomes: Promise<readonly Outcome[]>
  settle: (outcomes: readonly Outcome[]) => void = () => undefined
  fail: (error: unknown) => void = () => undefined
  readonly #cancellation: Cancellation | undefined

  constructor(
    { op, checks, keys }: Pick<Ask, 'op' | 'checks' | 'keys'>,
    cancellation: Cancellation | undefined,
  ) {
    this.op = op
    this.checks = checks
    this.keys = keys
    this.#cancellation = cancellation
    this.outcomes = new Promise((resolve, reject) => {
      this.settle = resolve
      this.fail = reject
    })
  }

  get isUnwanted(): boolean {
    return this.#cancellation?.isUnwanted ?? false
  }

  get control(): ControlCall | undefined {
    return this.#cancellation?.control
  }
}
