import type { StoreWay } from '../ledger/local-units.ts'
import type { Check } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { FailureMode } from '../model/policy.ts'
import type { Ask, DecidingOp, Outcome, StoreOp } from '../model/store.ts'
import { DeadlineEntry } from './deadlines.ts'

/** A limiter as the caller of a store: its rules for when the store does not answer. */
export interface CallingLimiter extends Pick<StoreWay, 'store' | 'instances'> {
  readonly failureMode: FailureMode
  readonly deadlineMs: number
  /** Called for every request that the store failed. */
  onFailure(op: StoreOp, error: unknown): void
}

/** The sender of an ask, which makes a decision of its end. */
export interface AskOwner extends CallingLimiter {
  onAnswer(ask: PendingAsk, outcomes: readonly Outcome[]): void
  onError(ask: PendingAsk, error: unknown): void
  /** The deadline has passed. Returns the decision of the failure mode. */
  onDeadline(ask: PendingAsk, error: unknown): Decision
}

/**
 * One request of a limiter to a store, until the store answers or the deadline passes. It is the
 * only object that a request costs here: it is the item of the store's queue and of the list of
 * deadlines, too.
 */
export class PendingAsk extends DeadlineEntry implements Ask {
  readonly op: DecidingOp
  checks: readonly Check[]
  readonly caller: AskOwner
  /**
   * The request that is decided, if other checks may follow for it: it waits for one deadline at
   * most.
   */
  readonly request: object | undefined
  keys: readonly string[] = noKeys
  /** For the denials: the number of changes to keys when the store was asked. */
  changes = 0
  /** For the denials: when the store was asked, in ms of a simulated clock. */
  simulatedMs = 0
  /** The answer, as soon as there is one. */
  decision: Decision | undefined = undefined
  /** The decision that was given when the deadline passed. */
  meanwhile: Decision | undefined = undefined
  #resolve: ((decision: Decision) => void) | undefined = undefined

  constructor(op: DecidingOp, checks: readonly Check[], caller: AskOwner, request?: object) {
    super()
    this.op = op
    this.checks = checks
    this.caller = caller
    this.request = request
  }

  get isUnwanted(): boolean {
    return this.decision !== undefined || this.meanwhile !== undefined
  }

  /** Time at which the store was asked, in ms of the monotonic clock. */
  get askedAt(): number {
    return this.dueAt - this.caller.deadlineMs
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

  settle(outcomes: readonly Outcome[]): void {
    this.caller.onAnswer(this, outcomes)
  }

  fail(error: unknown): void {
    this.caller.onError(this, error)
  }

  override miss(error: unknown): void {
    this.meanwhile = this.caller.onDeadline(this, error)
    this.#resolve?.(this.meanwhile)
  }
}

const noKeys: readonly string[] = []
