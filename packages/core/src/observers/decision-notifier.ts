import { isMemoryStore } from '../memory-store/memory-store.ts'
import { type Check, divideChecks, isLimited } from '../model/check.ts'
import { bindingIndex, type Decision, type ShadowRun } from '../model/decision.ts'
import { digestOf } from '../model/digest.ts'
import type { Policy } from '../model/policy.ts'
import type { Store } from '../model/store.ts'
import { andThen, isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { Alarm, monotonicMs } from '../waiting/timers.ts'
import { type JoinedObservers, notify } from './join-observers.ts'
import type { DecisionEvent, EventSource } from './observers.ts'

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
    if (isPromise(decision)) timing.isImmediate = false
    return andThen(decision, (known) => {
      timing.end()
      this.notify({ decision: known, checks, timing, request: undefined, route: undefined })
      return known
    })
  }

  /** Notifies observers of a decision, and of its shadow policies as soon as they are known. */
  notify(observed: ObservedDecision<Request>): void {
    const { onDecision, countDecision, onShadow } = this.#observers
    // Metrics keep the events of a while, so theirs must not keep requests alive.
    if (countDecision) countDecision(new ObservedEvent(observed, this, undefined))
    if (onDecision) notify(onDecision, new ObservedEvent(observed, this, observed.request))
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

/** The digest is computed only when read. */
class ObservedEvent<Request> implements DecisionEvent<Request> {
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
  readonly #binding: Check | undefined
  readonly #store: Store

  constructor(
    observed: ObservedDecision<unknown>,
    notifier: Pick<DecisionNotifier, 'answererOf' | 'store'>,
    request: Request | undefined,
  ) {
    const { decision, checks, timing } = observed
    const { outcomes } = decision
    this.decision = decision
    // As many outcomes as checks: none is in shadow mode.
    this.checks = checks.length === outcomes.length ? checks : divideChecks(checks).enforced
    const binding = this.checks[bindingIndex(outcomes, this.checks)]
    this.request = request
    this.route = observed.route
    this.method = observed.method
    this.policy = binding?.policy
    this.key = binding?.identity ?? binding?.key
    this.answeredBy = notifier.answererOf(decision, timing)
    this.atMs = timing?.atMs
    this.durationMs = timing?.durationMs ?? 0
    this.isQueued = observed.isQueued === true
    this.#binding = binding
    this.#store = notifier.store
  }

  get digest(): string | undefined {
    return this.#binding && digestOf(this.#binding.key, this.#store)
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
  #latest = new DecisionTiming()
  #left = 0
  readonly #alarm = new Alarm(() => {
    this.#left = 0
  })

  /** Starts timing a synchronous decision. */
  begin(): DecisionTiming {
    if (this.#left === 0) {
      this.#latest = new DecisionTiming()
      this.#left = decisionsATiming
      // One timer for all timings in its span: the next one may be renewed early.
      this.#alarm.within(maxAgeMs)
    }
    this.#left -= 1
    return this.#latest
  }
}
