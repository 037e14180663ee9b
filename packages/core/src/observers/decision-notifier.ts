import { isMemoryStore } from '../memory-store/memory-store.ts'
import { type Check, divideChecks, isLimited } from '../model/check.ts'
import { bindingIndex, type Decision, type ShadowRun } from '../model/decision.ts'
import { digestOf } from '../model/digest.ts'
import type { Policy } from '../model/policy.ts'
import type { Store } from '../model/store.ts'
import { andThen, isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { monotonicMs, startQuietTimer } from '../waiting/timers.ts'
import { type JoinedObservers, notify } from './join-observers.ts'
import type { CountedDecision, DecisionEvent, EventSource } from './observers.ts'

/** A decision to notify observers of. */
export interface ObservedDecision<Request> extends EventSource<Request> {
  readonly decision: Decision
  /** All checks, including shadow policies. */
  readonly checks: readonly Check[]
  /** `undefined` if no policy was checked. */
  readonly timing: DecisionTiming | undefined
  /** @default false */
  readonly isQueued?: boolean | undefined
}

/** Notifies observers of the decisions of one limiter. */
export class DecisionNotifier<Request = unknown> {
  /** True if anything observes decisions. */
  readonly isObserved: boolean
  readonly #observers: JoinedObservers<Request>
  readonly store: Store
  readonly #isRemote: boolean
  readonly #timer: SharedTimer | undefined

  constructor(observers: JoinedObservers<Request>, store: Store) {
    const { onDecision, countDecision, onShadow } = observers
    this.isObserved = [onDecision, countDecision, onShadow].some((each) => each !== undefined)
    this.#observers = observers
    this.store = store
    this.#isRemote = store.submit !== undefined || store.denials !== undefined
    this.#timer = isMemoryStore(store) ? new SharedTimer() : undefined
  }

  /** Starts timing a decision made only by the store. */
  time(): DecisionTiming {
    return this.#timer ? this.#timer.begin() : new DecisionTiming()
  }

  /** Decides, and notifies observers. */
  observe(
    decide: (op: 'consume', checks: readonly Check[]) => MaybePromise<Decision>,
    checks: readonly Check[],
  ): MaybePromise<Decision> {
    const timing = this.time()
    const decision = decide('consume', checks)
    const observed = (known: Decision): Decision => {
      timing.end()
      this.notify({ decision: known, checks, timing, request: undefined, route: undefined })
      return known
    }
    if (isPromise(decision)) timing.isImmediate = false
    return andThen(decision, observed)
  }

  /** Notifies observers of a decision, and of its shadow policies as soon as they are known. */
  notify(observed: ObservedDecision<Request>): void {
    const { onDecision, countDecision, onShadow } = this.#observers
    if (countDecision) countDecision(new DecisionSummary(observed, this))
    if (onDecision) notify(onDecision, new LoggedDecision(observed, this))
    if (onShadow && observed.decision.shadow) this.#notifyShadow(observed, observed.decision.shadow)
  }

  #notifyShadow(observed: ObservedDecision<Request>, run: ShadowRun): void {
    const { decision, checks: all, request, route, method } = observed
    const { store } = this
    void andThen(run.decisions, (decisions) => {
      const { shadows } = divideChecks(all)
      const checks = shadows.filter((_, index) => decisions[index]?.outcomes.length === 1)
      if (checks.length === 0) return
      notify(this.#observers.onShadow, {
        ...{ decision, outcomes: run.outcomes, checks, request, route, method },
        get digests() {
          return checks.map(({ key }) => digestOf(key, store))
        },
      })
    })
  }

  /** The source of an answer, as events name it. */
  answererOf({ allowed, outcomes, source }: Decision, timing: DecisionTiming | undefined): string {
    if (source !== 'store') return source
    if (timing === undefined) return 'guard'
    if (!this.#isRemote || !timing.isImmediate) return this.store.name ?? 'store'
    if (!allowed) return 'denial-cache'
    if (outcomes.some(({ policy }) => policy.maxUncounted > 0)) return 'async'
    return outcomes.some(isLimited) ? 'prefetch' : 'guard'
  }
}

/** A decision and its inputs. Everything else is computed on read. */
class DecisionSummary implements CountedDecision {
  readonly decision: Decision
  readonly route: string | undefined
  readonly method: string | undefined
  readonly isQueued: boolean
  readonly #checks: readonly Check[]
  readonly #timing: DecisionTiming | undefined
  readonly #notifier: Pick<DecisionNotifier, 'answererOf'>

  constructor(observed: ObservedDecision<unknown>, notifier: Pick<DecisionNotifier, 'answererOf'>) {
    this.decision = observed.decision
    this.route = observed.route
    this.method = observed.method
    this.isQueued = observed.isQueued === true
    this.#checks = observed.checks
    this.#timing = observed.timing
    this.#notifier = notifier
  }

  get checks(): readonly Check[] {
    const all = this.#checks
    // As many outcomes as checks: none is in shadow mode.
    return all.length === this.decision.outcomes.length ? all : divideChecks(all).enforced
  }

  /** The check that decides. */
  get binding(): Check | undefined {
    const { checks } = this
    return checks[bindingIndex(this.decision.outcomes, checks)]
  }

  get policy(): Policy | undefined {
    return this.binding?.policy
  }

  get answeredBy(): string {
    return this.#notifier.answererOf(this.decision, this.#timing)
  }

  get atMs(): number | undefined {
    return this.#timing?.atMs
  }

  get durationMs(): number {
    return this.#timing?.durationMs ?? 0
  }
}

/** The digest is computed only when read. */
class LoggedDecision<Request> implements DecisionEvent<Request> {
  readonly decision: Decision
  readonly checks: readonly Check[]
  readonly request: Request | undefined
  readonly route: string | undefined
  readonly method: string | undefined
  readonly policy: Policy | undefined
  readonly key: string | undefined
  readonly answeredBy: string
  readonly atMs: number | undefined
  readonly durationMs: number
  readonly isQueued: boolean
  readonly #store: Store

  constructor(
    observed: ObservedDecision<Request>,
    notifier: Pick<DecisionNotifier, 'answererOf' | 'store'>,
  ) {
    const summary = new DecisionSummary(observed, notifier)
    const { binding } = summary
    this.decision = summary.decision
    this.checks = summary.checks
    this.request = observed.request
    this.route = summary.route
    this.method = summary.method
    this.policy = binding?.policy
    this.key = binding?.identity ?? binding?.key
    this.answeredBy = summary.answeredBy
    this.atMs = summary.atMs
    this.durationMs = summary.durationMs
    this.isQueued = summary.isQueued
    this.#store = notifier.store
  }

  get digest(): string | undefined {
    const binding = this.checks[bindingIndex(this.decision.outcomes, this.checks)]
    return binding && digestOf(binding.key, this.#store)
  }
}

/** Maximum number of consecutive decisions that share a timing. */
const decisionsATiming = 16
/** Maximum time (ms) for which a timing is reused for further decisions. */
const maxAgeMs = 50

/** The timing of one decision. */
export class DecisionTiming {
  /** Time of the decision, or of its start until then: ms of `performance.now()`. */
  atMs: number = monotonicMs()
  durationMs = 0
  /** True if the decision came at once, without a wait for the store. */
  isImmediate = true
  #hasEnded = false

  /** Records that the decision was made. Only the first call counts. */
  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    const nowMs = monotonicMs()
    this.durationMs = nowMs - this.atMs
    this.atMs = nowMs
  }
}

/**
 * Times the decisions of a memory store. Reading the clock twice costs as much as a decision. So
 * the timing of one decision is reused for the next 15, if they come within 50 ms.
 */
class SharedTimer {
  #latest: DecisionTiming | undefined
  #left = 0
  #isAging = false

  /** Starts timing a synchronous decision. */
  begin(): DecisionTiming {
    if (this.#latest === undefined || this.#left === 0) return this.#renew()
    this.#left -= 1
    return this.#latest
  }

  #renew(): DecisionTiming {
    const latest = new DecisionTiming()
    this.#latest = latest
    this.#left = decisionsATiming - 1
    // One timer for all timings in its span: the next one may be renewed early.
    if (this.#isAging) return latest
    this.#isAging = true
    startQuietTimer(() => {
      this.#isAging = false
      this.#left = 0
    }, maxAgeMs)
    return latest
  }
}
