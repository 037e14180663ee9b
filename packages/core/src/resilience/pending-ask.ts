import type { StoreWay } from '../ledger/local-units.ts'
import type { Check } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { FailureMode } from '../model/policy.ts'
import type { Ask, DecidingOp, Outcome, StoreOp } from '../model/store.ts'
import { SluiceError } from '../options/errors.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { startQuietTimer } from '../waiting/timers.ts'

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
 * An entry in a list of deadlines, with its links: V8 keeps old tables of a Set for long, and with
 * them their garbage. An entry that was answered leaves the list at once.
 */
export abstract class DeadlineEntry {
  /** Its time, in ms of the monotonic clock; 0 before it is in a list. */
  dueAt = 0
  /** The list that the entry is in; `undefined` before, and after it has left. */
  list: Deadlines | undefined = undefined
  previous: DeadlineEntry | undefined = undefined
  next: DeadlineEntry | undefined = undefined

  /** Leaves its list, if it is in one: it was answered in time. */
  leave(): void {
    this.list?.remove(this)
  }

  /** Called when the deadline has passed. Deadlines that pass at once share one error. */
  abstract miss(error: unknown): void
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

/**
 * The lateness (ms) beyond which a timer gives its entries one more turn: the event loop was
 * blocked, and answers may lie in the socket.
 */
const toleratedLateMs = 5

/** Deadlines of one duration. They pass in the order of arrival, so one timer serves them all. */
export class Deadlines {
  readonly durationMs: number
  readonly #reason: () => Error | undefined
  #first: DeadlineEntry | undefined
  #last: DeadlineEntry | undefined
  #isTimed = false
  #mayExtend = true

  /** @param reason returns the cause of a missing answer, if it is known */
  constructor(durationMs: number, reason: () => Error | undefined) {
    this.durationMs = durationMs
    this.#reason = reason
  }

  add(entry: DeadlineEntry): void {
    entry.dueAt = monotonicMs() + this.durationMs
    entry.list = this
    entry.previous = this.#last
    if (this.#last) this.#last.next = entry
    else this.#first = entry
    this.#last = entry
    if (!this.#isTimed) this.#schedule(this.durationMs)
  }

  remove(entry: DeadlineEntry): void {
    const { previous, next } = entry
    if (previous) previous.next = next
    else this.#first = next
    if (next) next.previous = previous
    else this.#last = previous
    entry.previous = undefined
    entry.next = undefined
    entry.list = undefined
  }

  missAll(error: unknown): void {
    const last = this.#last
    for (let first = this.#first; first; first = this.#first) {
      this.remove(first)
      first.miss(error)
      if (first === last) return
    }
  }

  #schedule(delayMs: number): void {
    this.#isTimed = true
    startQuietTimer(() => this.#fire(), Math.max(1, Math.ceil(delayMs)))
  }

  #fire(): void {
    this.#isTimed = false
    const nowMs = monotonicMs()
    const late = nowMs - (this.#first?.dueAt ?? nowMs)
    if (this.#mayExtend && late > toleratedLateMs) {
      this.#mayExtend = false
      this.#schedule(1)
      return
    }
    this.#mayExtend = true
    this.#missUntil(nowMs)
    if (this.#first && !this.#isTimed) this.#schedule(this.#first.dueAt - monotonicMs())
  }

  #missUntil(nowMs: number): void {
    let error: SluiceError | undefined
    for (let first = this.#first; first && first.dueAt <= nowMs; first = this.#first) {
      this.remove(first)
      error ??= this.#missed()
      first.miss(error)
    }
  }

  #missed(): SluiceError {
    const message = `the store did not answer within ${this.durationMs} ms`
    const reason = this.#reason()
    if (!reason) return new SluiceError('SLUICE_STORE_DEADLINE', message)
    const { cause = reason } = reason
    return new SluiceError('SLUICE_STORE_DEADLINE', `${message}; ${reason.message}`, { cause })
  }
}

/** Deadlines by their duration in ms. */
export class DeadlinesByDuration extends Map<number, Deadlines> {
  readonly #lastFailure: () => Error | undefined

  /** @param lastFailure returns the cause of a missing answer, if it is known */
  constructor(lastFailure: () => Error | undefined) {
    super()
    this.#lastFailure = lastFailure
  }

  of(durationMs: number): Deadlines {
    const deadlines = this.get(durationMs) ?? new Deadlines(durationMs, this.#lastFailure)
    this.set(durationMs, deadlines)
    return deadlines
  }

  missAll(error: unknown): void {
    for (const deadlines of this.values()) deadlines.missAll(error)
  }
}

class PromiseEntry extends DeadlineEntry {
  readonly miss: (error: unknown) => void

  constructor(miss: (error: unknown) => void) {
    super()
    this.miss = miss
  }
}

/**
 * Returns a promise with a deadline: it rejects when the deadline passes first.
 * @param onMissed called then, with the error
 */
export function inTime<T>(
  value: MaybePromise<T>,
  deadlines: Deadlines,
  onMissed: (error: unknown) => void,
): Promise<T> {
  if (!isPromise(value)) return Promise.resolve(value)
  return new Promise((resolve, reject) => {
    const entry = new PromiseEntry((error) => {
      onMissed(error)
      reject(error)
    })
    deadlines.add(entry)
    value.then(resolve, reject).finally(() => entry.leave())
  })
}
