import type { StoreWay } from '../ledger/local-units.ts'
import type { Check } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { FailureMode } from '../model/policy.ts'
import type { DecidingOp, StoreOp } from '../model/store.ts'
import { Deadline } from '../waiting/deadlines.ts'

/** A limiter as the caller of a store, with its rules for a store that does not answer. */
export interface CallingLimiter extends Readonly<StoreWay['limiter']> {
  readonly failureMode: FailureMode
  readonly deadlineMs: number
  /** Called for each request for which the store failed. */
  onFailure(op: StoreOp, error: unknown): void
}

interface AskOwner {
  readonly limiter: CallingLimiter
}

/**
 * One request of a limiter to a store. To save objects, it is also the item in the store's queue
 * and in the ring of deadlines.
 */
export class PendingAsk<Caller extends AskOwner = AskOwner> extends Deadline {
  readonly op: DecidingOp
  checks: readonly Check[]
  readonly caller: Caller
  /** The request, if other checks may follow for it: all of them share one deadline. */
  readonly request: object | undefined
  keys: readonly string[] = noKeys
  /** For the denials: the number of changes to keys, and the simulated time, of the call. */
  changes = 0
  simulatedMs = 0
  /** The decision, by the store's answer or when the deadline passed. */
  decision: Decision | undefined = undefined
  #resolve: ((decision: Decision) => void) | undefined = undefined

  constructor(op: DecidingOp, checks: readonly Check[], caller: Caller, request?: object) {
    super()
    this.op = op
    this.checks = checks
    this.caller = caller
    this.request = request
  }

  get isUnwanted(): boolean {
    return this.decision !== undefined
  }

  /** Monotonic time (ms) of the call. */
  get askedAt(): number {
    return this.dueAt - this.caller.limiter.deadlineMs
  }

  promise(): Promise<Decision> {
    return new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  answer(decision: Decision): void {
    this.decision = decision
    this.#resolve?.(decision)
  }
}

const noKeys: readonly string[] = []
