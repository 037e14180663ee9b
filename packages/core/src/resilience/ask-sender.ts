import type { Fallback } from '../ledger/fallback.ts'
import type { GrantCheck } from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { Granted, Outcome } from '../model/store.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { Changes } from './changes.ts'
import { DeadlinesByDuration, inTime } from './deadlines.ts'
import { denialsOf, forgetting } from './denials.ts'
import { OutageWatch } from './outage-watch.ts'
import { type AnswerHandler, type Caller, type CallingLimiter, PendingAsk } from './pending-ask.ts'
import type { StoreMonitor } from './store-monitor.ts'

/**
 * Sends asks to a store: with a deadline, a circuit breaker, and a failure mode for when it does
 * not answer.
 */
export class AskSender implements AnswerHandler {
  readonly outage: OutageWatch
  readonly #deadlines: DeadlinesByDuration
  readonly #changes: Changes
  readonly #fallback: Fallback
  readonly #monitor: StoreMonitor
  /** True as soon as the store has answered with a promise. */
  #isRemote = false
  /** Requests that have waited their time out; `undefined` until there is one. */
  #timedOut: WeakSet<object> | undefined

  /** @param lastFailure returns the cause of a missing answer, if it is known */
  constructor(fallback: Fallback, monitor: StoreMonitor, lastFailure: () => Error | undefined) {
    this.#fallback = fallback
    this.#monitor = monitor
    this.#deadlines = new DeadlinesByDuration(lastFailure)
    const outage = new OutageWatch(monitor, fallback, {
      onAway: (error) => this.#deadlines.missAll(error),
      onBack: ({ store }) => void this.#changes.payAll(store),
    })
    this.outage = outage
    this.#changes = new Changes({ fallback, outage, deadlines: this.#deadlines, monitor })
  }

  /** The store as one limiter uses it. */
  callerOf(limiter: CallingLimiter): Caller {
    const { store } = limiter
    const caller: Caller = {
      ...limiter,
      denials: denialsOf(store),
      deadlines: this.#deadlines.of(limiter.deadlineMs),
      answerHandler: this,
      decide: (op, checks, request) => this.#decide(new PendingAsk(op, checks, caller, request)),
      charge: (check) => caller.decide('charge', [check]),
      grant: (checks) => forgetting(store, checks, () => store.grant?.(checks) ?? []),
      change: (op, held) => this.#changes.change(op, held, caller),
      mayAsk: (checks) => this.outage.mayAsk({ checks, caller }),
      hold: (check, isReturning) => this.#hold(check, isReturning, caller),
      decideWithout: (check, request, failure) => {
        const ask = new PendingAsk('consume', [check], caller, request)
        if (failure === undefined) return this.outage.decideWithout(ask)
        caller.onFailure(ask.op, failure)
        this.#noteTimedOut(request)
        return this.outage.decideWithout(ask)
      },
      overwrite: (change) => this.#changes.overwrite(change, caller),
    }
    return caller
  }

  async #hold(
    check: GrantCheck,
    isReturning: boolean,
    caller: Caller,
  ): Promise<Granted | undefined> {
    const { store, deadlines } = caller
    const askedAt = monotonicMs()
    try {
      const answers = isReturning ? caller.grant([check]) : (store.grant?.([check]) ?? [])
      if (isPromise(answers)) this.outage.noteWait()
      const [answer] = await inTime(answers, deadlines, () => this.#monitor.tellMissed())
      this.outage.succeed(caller, askedAt)
      return answer
    } catch (error) {
      this.outage.fail(caller, error)
      throw error
    }
  }

  #decide(ask: PendingAsk): MaybePromise<Decision> {
    // Each by its name: a loop over watches of several shapes costs half as much as the decision.
    const decision = this.#decideTimedOut(ask) ?? this.outage.before(ask)
    if (decision) return decision
    if (this.#fallback.debts.size > 0 && this.outage.isSound) this.#changes.payFor(ask)
    const denied = ask.caller.denials?.before(ask)
    return denied ? this.#decidedHere(denied, ask) : this.#askStore(ask)
  }

  #askStore(ask: PendingAsk): MaybePromise<Decision> {
    const { store } = ask.caller
    let outcomes: MaybePromise<readonly Outcome[]>
    try {
      if (store.submit) {
        this.#isRemote = true
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
    if (!this.#isRemote && this.outage.isUnderWay) this.outage.succeed(ask.caller)
    return this.#decidedHere(outcomes, ask)
  }

  /** Returns the decision of outcomes for which no server was asked, and so none was probed. */
  #decidedHere(outcomes: readonly Outcome[], { checks }: PendingAsk): Decision {
    this.outage.breaker.withdraw()
    return decisionOf(outcomes, checks, 'store')
  }

  #wait(ask: PendingAsk): Promise<Decision> {
    this.#isRemote = true
    this.outage.noteWait()
    ask.caller.deadlines.add(ask)
    return ask.promise()
  }

  onAnswer(ask: PendingAsk, found: readonly Outcome[]): void {
    try {
      if (ask.isAnsweredAtOnce) {
        ask.answer(this.#decidedHere(found, ask))
        return
      }
      const answer = decisionOf(found, ask.checks, 'store')
      ask.leave()
      ask.caller.denials?.answered(ask, answer)
      const { blocked } = this.#fallback
      if (!answer.allowed || blocked.size > 0) this.#fallback.remember(ask.checks, answer)
      if (ask.meanwhile) {
        this.#changes.answeredLate(ask, found)
        return
      }
      this.outage.succeed(ask.caller, ask.askedAt)
      ask.answer(answer)
    } catch (error) {
      // A store that answers nonsense.
      this.onError(ask, error)
    }
  }

  onError(ask: PendingAsk, error: unknown): void {
    ask.leave()
    if (!ask.meanwhile) ask.answer(this.#decideAfterFailure(error, ask, false))
    else this.#changes.lost(ask)
  }

  onDeadline(ask: PendingAsk, error: unknown): Decision {
    this.#monitor.tellMissed()
    if (typeof ask.request === 'object') this.#noteTimedOut(ask.request)
    return this.#decideAfterFailure(error, ask, true)
  }

  #noteTimedOut(request: object): void {
    this.#timedOut ??= new WeakSet()
    this.#timedOut.add(request)
  }

  /** All calls for one request wait for one deadline together. */
  #decideTimedOut(ask: PendingAsk): Decision | undefined {
    if (!this.#timedOut || !ask.request || !this.#timedOut.has(ask.request)) return undefined
    const decision = this.outage.decideWithout(ask)
    this.#changes.payNow(ask)
    return decision
  }

  /** @param isDoubtful whether the store may still do what was asked */
  #decideAfterFailure(error: unknown, ask: PendingAsk, isDoubtful: boolean): Decision {
    ask.caller.onFailure(ask.op, error)
    this.outage.fail(ask.caller, error)
    return this.outage.decideWithout(ask, isDoubtful)
  }
}
