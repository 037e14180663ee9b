import type { StoreWay } from '../ledger/local-units.ts'
import { isMemoryStore } from '../memory-store/memory-store.ts'
import { type ChangeAtStore, type Check, type GrantCheck, hasChanged } from '../model/check.ts'
import { type Decide, type Decision, decisionOf } from '../model/decision.ts'
import type { Ask, Granted, Outcome } from '../model/store.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { Deadlines } from '../waiting/deadlines.ts'
import { type Denials, denialsOf, forgetting } from './denials.ts'
import { type CallingLimiter, PendingAsk } from './pending-ask.ts'
import type { SharedStore } from './shared-store.ts'

/** A store as one limiter uses it: with a deadline, a breaker and a failure mode. */
export class Caller implements StoreWay {
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
    const ask = new StoreAsk(op, checks, this, request)
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
    return denied ? ask.decideHere(denied) : this.#askStore(ask)
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
    const ask = new StoreAsk('consume', [check], this, request)
    if (failure !== undefined) {
      this.limiter.onFailure(ask.op, failure)
      this.shared.timedOut.add(request)
    }
    return this.shared.outage.decideWithout(ask)
  }

  #askStore(ask: StoreAsk): MaybePromise<Decision> {
    const { store } = this.limiter
    let outcomes: MaybePromise<readonly Outcome[]>
    try {
      if (store.submit) {
        store.submit(ask)
        return ask.decision ?? this.#wait(ask)
      }
      outcomes = store.apply(ask.op, ask.checks, ask)
    } catch (error) {
      return ask.decision ?? ask.decideAfterFailure(error)
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
    return ask.decideHere(outcomes)
  }

  #wait(ask: StoreAsk): Promise<Decision> {
    this.shared.isRemote = true
    this.shared.outage.noteWait()
    this.#deadlines.add(ask)
    return ask.promise()
  }
}

/** One request of a caller to its store, which turns the end of the call into a decision. */
class StoreAsk extends PendingAsk<Caller> implements Ask {
  settle(found: readonly Outcome[]): void {
    const { denials, limiter, shared } = this.caller
    const { outage, changes, fallback } = shared
    try {
      // The store has answered synchronously: nobody waits for a promise yet.
      if (this.dueAt === 0) {
        this.answer(this.decideHere(found))
        return
      }
      const answer = decisionOf(found, this.checks, 'store')
      this.leave()
      denials?.answered(this, answer)
      if (!answer.allowed || fallback.blocked.size > 0) fallback.remember(this.checks, answer)
      if (this.decision) {
        changes.answeredLate(this, found)
        return
      }
      outage.succeed(limiter, this.askedAt)
      this.answer(answer)
    } catch (error) {
      // The store's answer is invalid.
      this.fail(error)
    }
  }

  fail(error: unknown): void {
    this.leave()
    if (!this.decision) this.answer(this.decideAfterFailure(error))
    // The store may have taken the units. They stay a debt.
    else this.caller.shared.changes.answeredLate(this, [])
  }

  override miss(error: unknown): void {
    if (this.decision) return
    const { monitor, timedOut } = this.caller.shared
    monitor.tellMissed()
    if (typeof this.request === 'object') timedOut.add(this.request)
    this.answer(this.decideAfterFailure(error, true))
  }

  /** Returns the decision of outcomes found without a server call, which cannot be a probe. */
  decideHere(found: readonly Outcome[]): Decision {
    this.caller.shared.outage.withdraw()
    return decisionOf(found, this.checks, 'store')
  }

  /** @param isDoubtful whether the store may still count the units */
  decideAfterFailure(error: unknown, isDoubtful = false): Decision {
    const { limiter, shared } = this.caller
    limiter.onFailure(this.op, error)
    shared.outage.fail(limiter, error)
    return shared.outage.decideWithout(this, isDoubtful)
  }
}
