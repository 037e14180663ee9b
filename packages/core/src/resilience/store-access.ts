import type { Check } from '../check.ts'
import { type Decision, decisionOf } from '../decision.ts'
import { SluiceError } from '../errors.ts'
import { passAll, refuseAll, strictest } from '../failure-mode.ts'
import { isPromise, type MaybePromise } from '../maybe-promise.ts'
import { type MemoryStore, memoryStore } from '../memory-store/memory-store.ts'
import { notify } from '../observers.ts'
import type { Outcome, Store, StoreOp } from '../store.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { Deadlines, inTime } from './deadlines.ts'
import { Fallback } from './fallback.ts'
import { monotonicMs } from './monotonic-clock.ts'
import { type Ask, type Caller, PendingAsk } from './pending-ask.ts'
import { Ramp } from './ramp.ts'
import { Reconciliation } from './reconciliation.ts'
import type { ResilienceEvent } from './resilience-event.ts'
import { count, noCounts, type StoreHealth } from './store-health.ts'

/**
 * How limiters ask a store: with a deadline, behind a circuit breaker, with local memory to stand in. One for each store, whatever the number
 * of its limiters.
 */
export class StoreAccess {
  readonly #store: Store
  readonly #fallback: Fallback
  readonly #breaker = new CircuitBreaker()
  readonly #deadlines = new Map<number, Deadlines>()
  readonly #reconciliation: Reconciliation
  readonly #observers = new Set<(event: ResilienceEvent) => void>()
  /** Whether the store answers with promises, as far as is known. */
  #isRemote = false
  /** Since when failure modes decide for some requests at least; `undefined` when all is well. */
  #awaySince: number | undefined
  #ramp: Ramp | undefined
  #decisionsAway = 0
  readonly #counters = noCounts()
  #missed = 0
  readonly #onMissed = (ask: PendingAsk, error: unknown): Decision => {
    this.#countMissed()
    return this.#failed(error, ask)
  }

  constructor(store: Store, memory: MemoryStore) {
    this.#store = store
    this.#fallback = new Fallback(memory)
    this.#reconciliation = new Reconciliation(store, this.#fallback, (event) => this.#tell(event))
    store.observe?.((event) => this.#tell(event))
  }

  fallsBackTo(memory: MemoryStore): boolean {
    return this.#fallback.isIn(memory)
  }

  /** How the store is, and what has happened so far. */
  health(): StoreHealth {
    return {
      breaker: this.#breaker.state,
      isAway: this.#awaySince !== undefined,
      instances: this.#store.instances ?? 1,
      keysOwed: this.#fallback.debts.size,
      counters: { ...this.#counters },
    }
  }

  observe(observer: (event: ResilienceEvent) => void): void {
    this.#observers.add(observer)
  }

  ask(ask: Ask): MaybePromise<Decision> {
    if (this.#awaySince !== undefined) return this.#askAway(ask)
    if (this.#fallback.debts.size > 0 && this.#breaker.isSound) {
      this.#reconciliation.payFor(ask.checks)
    }
    return this.#askStore(ask)
  }

  /** Settles what a decision took, where it was taken. `undefined` when that failed, or has to wait until the store is back. */
  async settle(
    op: StoreOp,
    { source }: Decision,
    checks: readonly Check[],
    caller: Caller,
  ): Promise<readonly Outcome[] | undefined> {
    if (source === 'fallback') return this.#fallback.settle(op, checks)
    if (this.#breaker.state !== 'closed') {
      if (op === 'refund' || op === 'release') this.#reconciliation.defer(op, checks)
      return undefined
    }
    try {
      return await this.#inTime(op, checks, caller)
    } catch (error) {
      caller.onFailure(op, error)
      return undefined
    }
  }

  /** @throws or rejects when the store failed, since nothing stands in for that */
  async reset(checks: readonly Check[], caller: Caller): Promise<void> {
    this.#fallback.reset(checks)
    await this.#inTime('reset', checks, caller)
  }

  /** Some of the traffic goes without the store, or all of it. */
  #askAway(ask: Ask): MaybePromise<Decision> {
    const nowMs = monotonicMs()
    const passing = this.#breaker.pass(nowMs)
    if (passing === 'probe') {
      this.#tell({ type: 'breaker', state: 'half-open', retryInMs: 0 })
      return this.#askStore(ask)
    }
    const ramp = this.#ramp
    if (passing === 'stop' || !ramp) return this.#without(ask)
    if (ramp.isOver(nowMs)) this.#arrive(nowMs)
    else if (!ramp.isBack(ask.checks[0]?.key ?? '', nowMs)) return this.#without(ask)
    this.#reconciliation.payFor(ask.checks)
    return this.#askStore(ask)
  }

  #askStore(ask: Ask): MaybePromise<Decision> {
    const asker = this.#isRemote ? new PendingAsk(ask, this.#onMissed) : undefined
    let outcomes: MaybePromise<readonly Outcome[]>
    try {
      outcomes = this.#store.apply(ask.op, ask.checks, asker)
    } catch (error) {
      return this.#failed(error, ask)
    }
    if (isPromise(outcomes)) {
      return this.#wait(outcomes, asker ?? new PendingAsk(ask, this.#onMissed))
    }
    // Known without the store, which so was not probed.
    this.#breaker.withdraw()
    return decisionOf(outcomes, 'store')
  }

  #wait(outcomes: Promise<readonly Outcome[]>, ask: PendingAsk): Promise<Decision> {
    this.#isRemote = true
    const deadlines = this.#deadlinesOf(ask.caller)
    const { decision } = ask
    deadlines.add(ask)
    outcomes.then(
      (found) => {
        deadlines.remove(ask)
        if (ask.meanwhile) {
          this.#reconciliation.answeredLate(ask.op, found, ask.meanwhile)
          return
        }
        // The time at which it was asked is near enough, and known.
        this.#succeeded(ask.dueAt - ask.caller.deadlineMs)
        ask.answer(decisionOf(found, 'store'))
      },
      (error: unknown) => {
        deadlines.remove(ask)
        if (!ask.meanwhile) ask.answer(this.#failed(error, ask))
      },
    )
    return decision
  }

  #succeeded(nowMs: number): void {
    if (!this.#breaker.succeed(nowMs)) return
    this.#ramp = new Ramp(monotonicMs(), Math.random)
    this.#tell({ type: 'breaker', state: 'closed', retryInMs: 0 })
    this.#payAll()
  }

  #failed(error: unknown, ask: Ask): Decision {
    const nowMs = monotonicMs()
    ask.caller.onFailure(ask.op, error)
    if (this.#breaker.fail(nowMs, error)) this.#leave(nowMs, error)
    return this.#without(ask)
  }

  #leave(nowMs: number, error: unknown): void {
    this.#ramp = undefined
    if (this.#awaySince === undefined) {
      this.#awaySince = nowMs
      this.#tell({ type: 'fallback-entered' })
    }
    const retryInMs = Math.ceil(this.#breaker.retryAt - nowMs)
    this.#tell({ type: 'breaker', state: 'open', retryInMs })
    // Nobody goes on waiting for what is known not to come.
    for (const deadlines of this.#deadlines.values()) deadlines.missAll(error)
  }

  #arrive(nowMs: number): void {
    const durationMs = Math.round(nowMs - (this.#awaySince ?? nowMs))
    this.#tell({ type: 'fallback-left', durationMs, decisions: this.#decisionsAway })
    this.#breaker.recover()
    this.#awaySince = undefined
    this.#ramp = undefined
    this.#decisionsAway = 0
    this.#payAll()
  }

  #payAll(): void {
    void this.#reconciliation.payAll(() => this.#breaker.state === 'closed')
  }

  #without({ op, checks, caller }: Ask): Decision {
    this.#decisionsAway += 1
    this.#counters.decisionsWithout += 1
    const mode = strictest(checks, caller.failureMode)
    if (mode === 'open') return passAll
    if (mode === 'closed') return refuseAll
    return this.#fallback.decide(op, checks, caller.instances ?? this.#store.instances ?? 1)
  }

  /** @throws or rejects when the store failed, or did not answer in time: it may still do what was asked */
  async #inTime(
    op: StoreOp,
    checks: readonly Check[],
    caller: Caller,
  ): Promise<readonly Outcome[]> {
    try {
      const answer = this.#store.apply(op, checks)
      if (!isPromise(answer)) return answer
      const outcomes = await inTime(answer, this.#deadlinesOf(caller))
      this.#succeeded(monotonicMs())
      return outcomes
    } catch (error) {
      const nowMs = monotonicMs()
      if (this.#breaker.fail(nowMs, error)) this.#leave(nowMs, error)
      throw error
    }
  }

  #deadlinesOf({ deadlineMs }: Caller): Deadlines {
    const known = this.#deadlines.get(deadlineMs)
    if (known) return known
    const deadlines = new Deadlines(deadlineMs)
    this.#deadlines.set(deadlineMs, deadlines)
    return deadlines
  }

  /** Tells of all whose time is over at once in one event. */
  #countMissed(): void {
    this.#missed += 1
    if (this.#missed > 1) return
    void Promise.resolve().then(() => {
      this.#tell({ type: 'deadline-missed', checks: this.#missed })
      this.#missed = 0
    })
  }

  #tell(event: ResilienceEvent): void {
    count(this.#counters, event)
    for (const observer of this.#observers) notify(observer, event)
  }
}

const accesses = new WeakMap<Store, StoreAccess>()

/**
 * The one way to a store that all its limiters share.
 * @param memory where is counted while the store is away; the first limiter that names one decides for all
 * @throws SluiceError when another memory is in use already
 */
export function accessTo(store: Store, memory?: MemoryStore): StoreAccess {
  const known = accesses.get(store)
  if (known) {
    if (memory && !known.fallsBackTo(memory)) {
      throw new SluiceError(
        'SLUICE_OPTION_INVALID',
        'fallback: another limiter on this store has a fallback already, or none was given; give all of them the same',
      )
    }
    return known
  }
  const access = new StoreAccess(store, memory ?? memoryStore())
  accesses.set(store, access)
  return access
}
