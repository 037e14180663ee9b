import type { Check } from '../check.ts'
import type { Decision } from '../decision.ts'
import type { FailureMode } from '../policy/failure-mode.ts'
import type { Asker, Store, StoreOp } from '../store.ts'
import { Waiting } from './deadlines.ts'
import type { AskOp } from './fallback.ts'

/** What a limiter wants done when the store does not answer. */
export interface Caller {
  readonly store: Store
  readonly failureMode: FailureMode
  readonly deadlineMs: number
  /** How many processes share the limits, where the user has pinned it. */
  readonly instances: number | undefined
  /** Told of every check that the store failed. */
  onFailure(op: StoreOp, error: unknown): void
}

export interface Ask {
  readonly op: AskOp
  readonly checks: readonly Check[]
  readonly caller: Caller
  /** For whom is asked, where more may be asked for it: it waits for a store that does not answer once at most. */
  readonly request: object | undefined
}

/** One request that a store was asked about, until it is answered: by the store, or otherwise when its time is over. */
export class PendingAsk extends Waiting implements Ask, Asker {
  readonly op: AskOp
  readonly checks: readonly Check[]
  answered = false
  /** What was answered when the time was over. */
  meanwhile: Decision | undefined
  readonly caller: Caller
  readonly request: object | undefined
  readonly #decideWithout: (ask: PendingAsk, error: unknown) => Decision
  #resolve: ((decision: Decision) => void) | undefined

  /** @param decideWithout what is answered when the time is over */
  constructor(
    { op, checks, caller, request }: Ask,
    decideWithout: (ask: PendingAsk, error: unknown) => Decision,
  ) {
    super()
    this.op = op
    this.checks = checks
    this.caller = caller
    this.request = request
    this.#decideWithout = decideWithout
  }

  get decision(): Promise<Decision> {
    return new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  answer(decision: Decision): void {
    this.answered = true
    this.#resolve?.(decision)
  }

  override miss(error: unknown): void {
    this.answered = true
    this.meanwhile = this.#decideWithout(this, error)
    this.#resolve?.(this.meanwhile)
  }
}
