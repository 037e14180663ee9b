import type { StoreWay } from '../ledger/local-units.ts'
import { isMemoryStore } from '../memory-store/memory-store.ts'
import { type ChangeAtStore, type Check, type GrantCheck, hasChanged } from '../model/check.ts'
import { type Decide, type Decision, decisionOf } from '../model/decision.ts'
import type { Granted, Outcome } from '../model/store.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { Deadlines } from '../waiting/deadlines.ts'
import { type Denials, denialsOf, forgetting } from './denials.ts'
import { type AskOwner, type CallingLimiter, PendingAsk } from './pending-ask.ts'
import type { SharedStore } from './shared-store.ts'

/** A store as one limiter uses it: with a deadline, a breaker and a failure mode. */
export class Caller implements StoreWay, AskOwner {
  readonly limiter: CallingLimiter
  readonly denials: Denials | undefined
  readonly shared: SharedStore
  readonly #deadlines: Deadlines

  constructor(limiter: CallingLimiter, shared: SharedStore) {
    this.limiter = limiter
    this.denials = denialsOf(limiter.store)
    this.#deadlines = shared.deadlinesOf(limiter.deadlineMs)
    this.shared = shared
  }

  readonly decide: Decide = (op, checks, request) => {
    const ask = new PendingAsk(op, checks, this, request)
    const { outage, changes, fallback } = this.shared
    // No loop over the watches: with their several shapes, it costs half as much as the decision.
    if (request && this.shared.timedOut.has(request)) {
      // All calls for one request share one deadline.
      const decision = outage.decideWithout(ask)
      changes.payFor(ask)
      return decision
    }
    if (!outage.mayAsk(ask)) return outage.decideWithout(ask)
    if (fallback.debts.size > 0 && outage.isSound) changes.payFor(ask)
    const denied = this.denials?.before(ask)
    return denied ? this.#decidedHere(denied, ask) : this.#askStore(ask)
  }

  grant(check: GrantCheck, isReturning: boolean): MaybePromise<readonly Granted[]> {
    const ask = () => this.limiter.store.grant?.([check]) ?? []
    return isReturning ? forgetting(this.limiter.store, [check], ask) : ask()
  }

  readonly change: ChangeAtStore = (op, held) => {
    const { store } = this.limiter
    // It never fails, and promises would take most of the time of a release.
    if (isMemoryStore(store)) return hasChanged(op, store.change({ op, checks: held }))
    return this.shared.changes.change(op, held, this.limiter)
  }

  /** Returns whether the store may be called. If so, it must be called. */
  mayAsk(checks: readonly Check[]): boolean {
    return this.shared.outage.mayAsk({ checks, caller: this })
  }

  /** Renews and takes grants within the deadline. Rejects if the store failed. */
  async hold(check: GrantCheck, isReturning: boolean): Promise<Granted | undefined> {
    const { outage, monitor } = this.shared
    const asking = () =>
      this.#deadlines.inTime(this.grant(check, isReturning), () => monitor.tellMissed())
    const [answer] = await outage.attempt(asking, this.limiter)
    return answer
  }

  /** @param failure why the store did not answer: it is not called again for the request */
  decideWithout(check: Check, request: object, failure: unknown): Decision {
    const ask = new PendingAsk('consume', [check], this, request)
    if (failure !== undefined) {
      this.limiter.onFailure(ask.op, failure)
      this.shared.timedOut.add(request)
    }
    return this.shared.outage.decideWithout(ask)
  }

  #askStore(ask: PendingAsk): MaybePromise<Decision> {
    const { store } = this.limiter
    let outcomes: MaybePromise<readonly Outcome[]>
    try {
      if (store.submit) {
        store.submit(ask)
        return ask.decision ?? this.#wait(ask)
      }
      outcomes = store.apply(ask.op, ask.checks, ask)
    } catch (error) {
      return ask.decision ?? this.#decideAfterFailure(error, ask, false)
    }
    if (isPromise(outcomes)) {
      outcomes.then(
        (found) => ask.settle(found),
        (error: unknown) => ask.fail(error),
      )
      return this.#wait(ask)
    }
    if (!this.shared.isRemote && this.shared.outage.isUnderWay) {
      this.shared.outage.succeed(this.limiter)
    }
    return this.#decidedHere(outcomes, ask)
  }

  /** Returns the decision of outcomes found without a server call, which cannot be a probe. */
  #decidedHere(outcomes: readonly Outcome[], { checks }: PendingAsk): Decision {
    this.shared.outage.withdraw()
    return decisionOf(outcomes, checks, 'store')
  }

  #wait(ask: PendingAsk): Promise<Decision> {
    this.shared.isRemote = true
    this.shared.outage.noteWait()
    this.#deadlines.add(ask)
    return ask.promise()
  }

  onAnswer(ask: PendingAsk, found: readonly Outcome[]): void {
    const { outage, changes, fallback } = this.shared
    try {
      // The store has answered synchronously: nobody waits for a promise yet.
      if (ask.dueAt === 0) {
        ask.answer(this.#decidedHere(found, ask))
        return
      }
      const answer = decisionOf(found, ask.checks, 'store')
      ask.leave()
      this.denials?.answered(ask, answer)
      if (!answer.allowed || fallback.blocked.size > 0) fallback.remember(ask.checks, answer)
      if (ask.decision) {
        changes.answeredLate(ask, found)
        return
      }
      outage.succeed(this.limiter, ask.askedAt)
      ask.answer(answer)
    } catch (error) {
      // The store's answer is invalid.
      this.onError(ask, error)
    }
  }

  onError(ask: PendingAsk, error: unknown): void {
    ask.leave()
    if (!ask.decision) ask.answer(this.#decideAfterFailure(error, ask, false))
    // The store may have taken the units. They stay a debt.
    else this.shared.changes.answeredLate(ask, [])
  }

  onDeadline(ask: PendingAsk, error: unknown): Decision {
    this.shared.monitor.tellMissed()
    if (typeof ask.request === 'object') this.shared.timedOut.add(ask.request)
    return this.#decideAfterFailure(error, ask, true)
  }

  #decideAfterFailure(error: unknown, ask: PendingAsk, isDoubtful: boolean): Decision {
    this.limiter.onFailure(ask.op, error)
    this.shared.outage.fail(this.limiter, error)
    return this.shared.outage.decideWithout(ask, isDoubtful)
  }
}
