import { Fallback } from '../ledger/fallback.ts'
import { Prefetcher } from '../ledger/prefetcher.ts'
import { Uncounted } from '../ledger/uncounted.ts'
import type { MemoryStore } from '../memory-store/memory-store.ts'
import type { Check } from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { ResilienceEvent } from '../model/resilience-event.ts'
import type { Outcome, Store, StoreOp } from '../model/store.ts'
import type { StoreHealth } from '../model/store-health.ts'
import { SluiceError } from '../options/errors.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { ControlCall } from '../waiting/control-call.ts'
import { DeadlinesByDuration, inTime } from './deadlines.ts'
import { applyChange, denialsOf } from './denials-of-store.ts'
import { decideWithout } from './failure-decision.ts'
import { OutageWatch } from './outage-watch.ts'
import { type AnswerHandler, type Caller, PendingAsk } from './pending-ask.ts'
import { Reconciliation } from './reconciliation.ts'
import { grantsOf, StoreMonitor } from './store-monitor.ts'

type AskingLimiter = Pick<
  Caller,
  'store' | 'failureMode' | 'deadlineMs' | 'instances' | 'onFailure'
>

/** Asks a store for all its limiters: with a deadline, a circuit breaker and a local fallback. */
export class StoreAccess implements AnswerHandler {
  readonly memory: MemoryStore
  readonly #heard = new WeakSet<Store>()
  /** Any of its stores: they share a connection. */
  #store: Store | undefined
  readonly #fallback: Fallback
  readonly #deadlines = new DeadlinesByDuration(() => this.#store?.telemetry?.lastFailure)
  readonly #reconciliation: Reconciliation
  readonly #monitor = new StoreMonitor()
  /** True as soon as the store has answered with a promise. */
  #isRemote = false
  readonly #outage: OutageWatch
  readonly prefetcher: Prefetcher = new Prefetcher(() => this.isAway)
  readonly uncounted: Uncounted = new Uncounted({
    isAway: () => this.isAway,
    isPaid: (receipt) => this.#fallback.isPaid(receipt),
  })
  /** Requests that have waited their time out; `undefined` until there is one. */
  #timedOut: WeakSet<object> | undefined

  constructor(memory: MemoryStore) {
    this.memory = memory
    this.#fallback = new Fallback(memory)
    this.#outage = new OutageWatch(this.#monitor, {
      decideWithout: (ask) => this.#decideWithout(ask),
      onAway: (error) => this.#deadlines.missAll(error),
      onBack: ({ store }) => void this.#reconciliation.payAll(store),
    })
    this.#reconciliation = new Reconciliation(this.#fallback, this.#outage, this.#monitor)
  }

  get isAway(): boolean {
    return this.#outage.isUnderWay
  }

  /** A limiter, as it asks here. */
  callerOf(limiter: AskingLimiter): Caller {
    const { store } = limiter
    const caller: Caller = {
      ...limiter,
      denials: denialsOf(store),
      answerHandler: this,
      applyGrant: (checks) => applyChange(store, 'grant', checks),
      charge: (check) => this.ask(new PendingAsk('charge', [check], caller)),
      change: (op, held) => this.#change(op, held, caller),
    }
    return caller
  }

  /** Listens to a store of this access, once. */
  listenTo(store: Store): void {
    if (this.#heard.has(store)) return
    this.#heard.add(store)
    this.#store = store
    store.telemetry?.observe?.((event) => this.#monitor.tell(event))
    store.telemetry?.observeReturn?.(() => this.#outage.retryNow())
  }

  /** Returns the health of a store, and its counters. */
  health(store: Store): StoreHealth {
    return {
      ...this.#monitor.healthOf(store),
      breaker: this.#outage.breakerState,
      isAway: this.isAway,
      keysOwed: this.#fallback.debts.size,
      ...this.uncounted.reading(store.fleet?.instances),
      ...grantsOf(this.prefetcher, store),
    }
  }

  observe(observer: (event: ResilienceEvent) => void, identity?: unknown): void {
    this.#monitor.observe(observer, identity)
  }

  ask(ask: PendingAsk): MaybePromise<Decision> {
    // Each by its name: a loop over watches of several shapes costs half as much as the decision.
    const decision =
      this.#decideTimedOut(ask) ?? this.#outage.before(ask) ?? this.#reconciliation.before(ask)
    if (decision) return decision
    const denied = ask.caller.denials?.before(ask)
    if (denied) return this.#decidedHere(denied, ask)
    return this.#askStore(ask)
  }

  /**
   * Changes at the store what decisions took. Returns whether anything was there, all of it for
   * leases to be renewed; false when the store failed, and when the change waits for it.
   */
  async #change(
    op: 'refund' | 'release' | 'renew',
    checks: readonly Check[],
    caller: Caller,
  ): Promise<boolean> {
    if (!this.#outage.isClosed) {
      if (op !== 'renew') this.#reconciliation.defer(op, checks)
      return false
    }
    try {
      const changed = (await this.#inTime(op, checks, caller)).map(({ allowed }) => allowed)
      return op === 'renew' ? !changed.includes(false) : changed.includes(true)
    } catch (error) {
      caller.onFailure(op, error)
      return false
    }
  }

  /** @throws or rejects when the store failed or is away: nothing was changed here either */
  async overwrite(
    op: 'reset' | 'block',
    checks: readonly Check[],
    caller: Caller,
  ): Promise<readonly Outcome[]> {
    if (!this.#outage.isClosed) {
      throw new SluiceError(
        'SLUICE_NOT_DONE',
        `the store is away, so the ${op} was not done; try again when it is back (storeHealth tells)`,
      )
    }
    const outcomes = await this.#inTime(op, checks, caller)
    this.#fallback.overwrite(op, await this.#fallback.keyed(checks, caller.store))
    return outcomes
  }

  #askStore(ask: PendingAsk): MaybePromise<Decision> {
    const { store } = ask.caller
    if (store.submit) return this.#submit(ask, store)
    let outcomes: MaybePromise<readonly Outcome[]>
    try {
      outcomes = store.apply(ask.op, ask.checks, ask)
    } catch (error) {
      return this.#decideAfterFailure(error, ask, false)
    }
    if (isPromise(outcomes)) {
      outcomes.then(
        (found) => ask.settle(found),
        (error: unknown) => ask.fail(error),
      )
      return this.#wait(ask)
    }
    if (!this.#isRemote && this.isAway) this.#outage.succeed(ask.caller, monotonicMs())
    return this.#decidedHere(outcomes, ask)
  }

  /** Returns the decision of outcomes for which no server was asked, and so none was probed. */
  #decidedHere(outcomes: readonly Outcome[], { checks }: PendingAsk): Decision {
    this.#outage.withdraw()
    return decisionOf(outcomes, checks, 'store')
  }

  #submit(ask: PendingAsk, store: Store): MaybePromise<Decision> {
    this.#isRemote = true
    try {
      store.submit?.(ask)
    } catch (error) {
      if (!ask.decision) return this.#decideAfterFailure(error, ask, false)
    }
    return ask.decision ?? this.#wait(ask)
  }

  #wait(ask: PendingAsk): Promise<Decision> {
    this.#isRemote = true
    this.#outage.noteWait()
    this.#deadlines.of(ask.caller.deadlineMs).add(ask)
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
      ask.caller.denials?.answered(ask, found, answer)
      this.#fallback.remember(ask.checks, answer)
      this.#reconciliation.answered(ask, found)
      this.#outage.answered(ask)
      if (!ask.meanwhile) ask.answer(answer)
    } catch (error) {
      // A store that answers nonsense.
      this.onError(ask, error)
    }
  }

  onError(ask: PendingAsk, error: unknown): void {
    ask.leave()
    if (!ask.meanwhile) ask.answer(this.#decideAfterFailure(error, ask, false))
    else this.#reconciliation.failed(ask)
  }

  onDeadline(ask: PendingAsk, error: unknown): Decision {
    this.#monitor.tellMissed()
    if (typeof ask.request === 'object') {
      this.#timedOut ??= new WeakSet()
      this.#timedOut.add(ask.request)
    }
    return this.#decideAfterFailure(error, ask, true)
  }

  /** All calls for one request wait for one deadline together. */
  #decideTimedOut(ask: PendingAsk): Decision | undefined {
    if (!this.#timedOut || !ask.request || !this.#timedOut.has(ask.request)) return undefined
    const decision = this.#decideWithout(ask)
    this.#reconciliation.payNow(ask)
    return decision
  }

  /** @param isDoubtful whether the store may still do what was asked */
  #decideAfterFailure(error: unknown, ask: PendingAsk, isDoubtful: boolean): Decision {
    ask.caller.onFailure(ask.op, error)
    this.#outage.failed(ask, error)
    return this.#decideWithout(ask, isDoubtful)
  }

  #decideWithout(ask: PendingAsk, isDoubtful = false): Decision {
    this.#outage.countDecision()
    return decideWithout(ask, this.#fallback, isDoubtful)
  }

  /**
   * @throws or rejects when the store failed or was late. It may still give back and renew units,
   * but changes nothing else any more, if it keeps the deadlines of control calls
   */
  async #inTime(
    op: StoreOp,
    checks: readonly Check[],
    caller: Caller,
  ): Promise<readonly Outcome[]> {
    const isControl = op === 'reset' || op === 'block'
    const control = isControl ? new ControlCall(caller.deadlineMs) : undefined
    let missed: unknown
    try {
      const answer = applyChange(caller.store, op, checks, control)
      if (!isPromise(answer)) return answer
      const outcomes = await inTime(answer, this.#deadlines.of(caller.deadlineMs), (error) => {
        missed = error
      })
      this.#outage.succeed(caller, monotonicMs())
      return outcomes
    } catch (error) {
      this.#outage.fail(caller, error)
      throw missed && control ? control.failure(missed) : error
    }
  }
}
