import type { Check } from '../check.ts'
import { type Decision, decisionOf } from '../decision.ts'
import { type FailureMode, passAll, refuseAll, strictest } from '../failure-mode.ts'
import { isPromise, type MaybePromise } from '../maybe-promise.ts'
import { notify } from '../observers.ts'
import type { Asker, Outcome, Store, StoreOp } from '../store.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { Deadlines } from './deadlines.ts'
import { type AskOp, Fallback } from './fallback.ts'
import { monotonicMs } from './monotonic-clock.ts'
import { Ramp } from './ramp.ts'
import { Reconciliation } from './reconciliation.ts'
import type { ResilienceEvent } from './resilience-event.ts'

/** What a limiter wants done when the store does not answer. */
export interface Caller {
  readonly failureMode: FailureMode
  readonly deadlineMs: number
  /** How many processes share the limits, where the user has pinned it. */
  readonly instances: number | undefined
  /** Told of every check that the store failed. */
  onFailure(op: StoreOp, error: unknown): void
}

/**
 * How limiters ask a store: with a deadline, behind a circuit breaker, with local memory to stand in. One for each store, whatever the number
 * of its limiters.
 */
export class StoreAccess {
  readonly #store: Store
  readonly #fallback = new Fallback()
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
  #missed = 0

  constructor(store: Store) {
    this.#store = store
    this.#reconciliation = new Reconciliation(store, this.#fallback, (event) => this.#tell(event))
    store.observe?.((event) => this.#tell(event))
  }

  observe(observer: (event: ResilienceEvent) => void): void {
    this.#observers.add(observer)
  }

  ask(op: AskOp, checks: readonly Check[], caller: Caller): MaybePromise<Decision> {
    if (this.#awaySince !== undefined) return this.#askAway(op, checks, caller)
    if (this.#fallback.debts.size > 0) this.#reconciliation.payFor(checks)
    return this.#askStore(op, checks, caller)
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
  #askAway(op: AskOp, checks: readonly Check[], caller: Caller): MaybePromise<Decision> {
    const nowMs = monotonicMs()
    const passing = this.#breaker.pass(nowMs)
    if (passing === 'probe') {
      this.#tell({ type: 'breaker', state: 'half-open', retryInMs: 0 })
      return this.#askStore(op, checks, caller)
    }
    const ramp = this.#ramp
    if (passing === 'stop' || !ramp) return this.#without(op, checks, caller)
    if (ramp.isOver(nowMs)) this.#arrive(nowMs)
    else if (!ramp.isBack(checks[0]?.key ?? '', nowMs)) return this.#without(op, checks, caller)
    this.#reconciliation.payFor(checks)
    return this.#askStore(op, checks, caller)
  }

  #askStore(op: AskOp, checks: readonly Check[], caller: Caller): MaybePromise<Decision> {
    const asker: Asker | undefined = this.#isRemote ? { answered: false } : undefined
    let outcomes: MaybePromise<readonly Outcome[]>
    try {
      outcomes = this.#store.apply(op, checks, asker)
    } catch (error) {
      return this.#failed(error, op, checks, caller)
    }
    if (isPromise(outcomes)) {
      return this.#wait(outcomes, asker ?? { answered: false }, { op, checks, caller })
    }
    // Known without the store, which so was not probed.
    this.#breaker.withdraw()
    return decisionOf(outcomes, 'store')
  }

  #wait(
    outcomes: Promise<readonly Outcome[]>,
    asker: Asker,
    { op, checks, caller }: { op: AskOp; checks: readonly Check[]; caller: Caller },
  ): Promise<Decision> {
    this.#isRemote = true
    return new Promise((resolve) => {
      let meanwhile: Decision | undefined
      this.#deadlinesOf(caller).add(asker, (error) => {
        asker.answered = true
        this.#countMissed()
        meanwhile = this.#failed(error, op, checks, caller)
        resolve(meanwhile)
      })
      outcomes.then(
        (found) => {
          if (meanwhile) {
            this.#reconciliation.answeredLate(op, found, meanwhile)
            return
          }
          asker.answered = true
          this.#succeeded()
          resolve(decisionOf(found, 'store'))
        },
        (error: unknown) => {
          if (meanwhile) return
          asker.answered = true
          resolve(this.#failed(error, op, checks, caller))
        },
      )
    })
  }

  #succeeded(): void {
    const nowMs = monotonicMs()
    if (!this.#breaker.succeed(nowMs)) return
    this.#ramp = new Ramp(nowMs, Math.random)
    this.#tell({ type: 'breaker', state: 'closed', retryInMs: 0 })
    this.#payAll()
  }

  #failed(error: unknown, op: AskOp, checks: readonly Check[], caller: Caller): Decision {
    const nowMs = monotonicMs()
    caller.onFailure(op, error)
    if (this.#breaker.fail(nowMs, error)) this.#leave(nowMs, error)
    return this.#without(op, checks, caller)
  }

  #leave(nowMs: number, error: unknown): void {
    this.#ramp = undefined
    if (this.#awaySince === undefined) {
      this.#awaySince = nowMs
      this.#tell({ type: 'fallback-entered' })
    }
    this.#tell({ type: 'breaker', state: 'open', retryInMs: this.#breaker.retryAt - nowMs })
    // Nobody goes on waiting for what is known not to come.
    for (const deadlines of this.#deadlines.values()) deadlines.missAll(error)
  }

  #arrive(nowMs: number): void {
    const durationMs = nowMs - (this.#awaySince ?? nowMs)
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

  #without(op: AskOp, checks: readonly Check[], caller: Caller): Decision {
    this.#decisionsAway += 1
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
    const asker: Asker = { answered: false }
    try {
      const answer = this.#store.apply(op, checks)
      if (!isPromise(answer)) return answer
      const outcomes = await new Promise<readonly Outcome[]>((resolve, reject) => {
        this.#deadlinesOf(caller).add(asker, reject)
        answer.then(resolve, reject)
      })
      this.#succeeded()
      return outcomes
    } catch (error) {
      const nowMs = monotonicMs()
      if (this.#breaker.fail(nowMs, error)) this.#leave(nowMs, error)
      throw error
    } finally {
      asker.answered = true
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
    for (const observer of this.#observers) notify(observer, event)
  }
}

const accesses = new WeakMap<Store, StoreAccess>()

/** The one way to a store that all its limiters share. */
export function accessTo(store: Store): StoreAccess {
  const known = accesses.get(store)
  if (known) return known
  const access = new StoreAccess(store)
  accesses.set(store, access)
  return access
}
