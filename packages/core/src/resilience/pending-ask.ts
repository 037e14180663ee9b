import type { StoreWay } from '../ledger/local-units.ts'
import type { Check, GrantCheck } from '../model/check.ts'
import type { Decide, Decision } from '../model/decision.ts'
import type { FailureMode } from '../model/policy.ts'
import type { Ask, DecidingOp, Granted, ManualChange, Outcome, StoreOp } from '../model/store.ts'
import { DeadlineEntry, type Deadlines } from './deadlines.ts'
import type { Denials, RememberedAsk } from './denials.ts'

/** A limiter as the caller of a store: its rules for when the store does not answer. */
export interface CallingLimiter extends Pick<StoreWay, 'store' | 'instances'> {
  readonly failureMode: FailureMode
  readonly deadlineMs: number
  /** Called for every request that the store failed. */
  onFailure(op: StoreOp, error: unknown): void
}

/** The store as one limiter uses it. */
export interface Caller extends CallingLimiter, StoreWay {
  /** The denials of the store; `undefined` when none may be repeated. */
  readonly denials: Denials | undefined
  readonly deadlines: Deadlines
  readonly answerHandler: AnswerHandler
  /** Asks the store, or decides by the failure mode. */
  readonly decide: Decide
  /** Tells whether the store may be asked about these checks. Then it must be asked. */
  mayAsk(checks: readonly Check[]): boolean
  /**
   * Renews and takes grants, within the deadline.
   * @param isReturning whether units come back, so that denials of the key are forgotten
   * @throws or rejects when the store failed
   */
  hold(check: GrantCheck, isReturning: boolean): Promise<Granted | undefined>
  /**
   * Takes units by the failure mode.
   * @param failure why the store did not answer: later calls for the request do not ask it again.
   * `undefined` if it was not asked
   */
  decideWithout(check: Check, request: object, failure: unknown): Decision
  /** @throws or rejects when the store failed or is away: nothing was changed here either */
  overwrite(change: ManualChange): Promise<readonly boolean[]>
}

export interface AnswerHandler {
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
export class PendingAsk extends DeadlineEntry implements Ask, RememberedAsk {
  readonly op: DecidingOp
  checks: readonly Check[]
  readonly caller: Caller
  /**
   * The request that is decided, if other checks may follow for it: it waits for one deadline at
   * most.
   */
  readonly request: object | undefined
  keys: readonly string[] = noKeys
  changes = 0
  simulatedMs = 0
  /** The answer, as soon as there is one. */
  decision: Decision | undefined = undefined
  /** The decision that was given when the deadline passed. */
  meanwhile: Decision | undefined = undefined
  #resolve: ((decision: Decision) => void) | undefined = undefined

  constructor(op: DecidingOp, checks: readonly Check[], caller: Caller, request?: object) {
    super()
    this.op = op
    this.checks = checks
    this.caller = caller
    this.request = request
  }

  /** Tells whether the store answers while it is being asked: nobody waits for a promise yet. */
  get isAnsweredAtOnce(): boolean {
    return this.list === undefined && this.meanwhile === undefined
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
    this.caller.answerHandler.onAnswer(this, outcomes)
  }

  fail(error: unknown): void {
    this.caller.answerHandler.onError(this, error)
  }

  override miss(error: unknown): void {
    this.meanwhile = this.caller.answerHandler.onDeadline(this, error)
    this.#resolve?.(this.meanwhile)
  }
}

const noKeys: readonly string[] = []
