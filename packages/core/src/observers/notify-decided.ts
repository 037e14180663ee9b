import { isMemoryStore } from '../memory-store/memory-store.ts'
import { type Check, divideChecks } from '../model/check.ts'
import { bindingIndex, type Decision } from '../model/decision.ts'
import { digestOf } from '../model/digest.ts'
import type { Policy } from '../model/policy.ts'
import type { Outcome, Store } from '../model/store.ts'
import { andThen, isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { DecisionTiming, SharedTimer } from './decision-timer.ts'
import type { JoinedObservers } from './join-observers.ts'
import { notify } from './notify.ts'
import type { CountedDecision, DecisionEvent, EventSource } from './observers.ts'

/** A decision to notify observers of. */
export interface ToldDecision<Request> extends EventSource<Request> {
  readonly decision: Decision
  /** All that was asked, policies in shadow too. */
  readonly checks: readonly Check[]
  /** `undefined` if no policy was asked. */
  readonly timing: DecisionTiming | undefined
  /** @default false */
  readonly isQueued?: boolean | undefined
}

type DecisionObservers<Request> = Pick<
  JoinedObservers<Request>,
  'onDecision' | 'countDecision' | 'onShadow'
>

/** Notifies observers of the decisions of one limiter. */
export class DecisionNotifier<Request = unknown> {
  /** Tells whether somebody observes decisions. */
  readonly isObserved: boolean
  readonly #observers: DecisionObservers<Request>
  readonly #store: AnsweringStore
  readonly #timer: SharedTimer | undefined

  constructor(observers: DecisionObservers<Request>, store: Store) {
    const { onDecision, countDecision, onShadow } = observers
    this.isObserved = [onDecision, countDecision, onShadow].some((each) => each !== undefined)
    this.#observers = observers
    this.#store = new AnsweringStore(store)
    this.#timer = isMemoryStore(store) ? new SharedTimer() : undefined
  }

  /** Begins the timing of a decision that the store alone comes to. */
  time(): DecisionTiming {
    return this.#timer ? this.#timer.begin() : new DecisionTiming()
  }

  /** Decides, and notifies of the decision. */
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

  /** Notifies of a decision, and of its policies in shadow as soon as they are known. */
  notify(told: ToldDecision<Request>): void {
    const { onDecision, countDecision, onShadow } = this.#observers
    if (countDecision) countDecision(new Decided(told, this.#store))
    if (onDecision) notify(onDecision, new DecidedEvent(told, this.#store))
    if (onShadow) notifyShadow(onShadow, told, this.#store.store)
  }
}

/** A store, as events of decisions name it. */
class AnsweringStore {
  readonly store: Store
  readonly #name: string
  readonly #isRemote: boolean

  constructor(store: Store) {
    this.store = store
    this.#name = store.name ?? 'store'
    this.#isRemote = store.submit !== undefined || store.denials !== undefined
  }

  answererOf({ allowed, outcomes, source }: Decision, timing: DecisionTiming | undefined): string {
    if (source !== 'store') return source
    if (timing === undefined) return 'guard'
    if (!this.#isRemote || !timing.isImmediate) return this.#name
    if (!allowed) return 'denial-cache'
    if (outcomes.some(({ policy }) => policy.maxUncounted > 0)) return 'async'
    return outcomes.some(isLimited) ? 'prefetch' : 'guard'
  }
}

/** A decision as it was come to. All else is computed when it is read. */
class Decided implements CountedDecision {
  readonly decision: Decision
  readonly route: string | undefined
  readonly method: string | undefined
  readonly isQueued: boolean
  readonly #asked: readonly Check[]
  readonly #timing: DecisionTiming | undefined
  readonly #store: AnsweringStore

  constructor(told: ToldDecision<unknown>, store: AnsweringStore) {
    this.decision = told.decision
    this.route = told.route
    this.method = told.method
    this.isQueued = told.isQueued === true
    this.#asked = told.checks
    this.#timing = told.timing
    this.#store = store
  }

  get checks(): readonly Check[] {
    const asked = this.#asked
    // As many outcomes as checks: none is in shadow.
    return asked.length === this.decision.outcomes.length ? asked : divideChecks(asked).enforced
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
    return this.#store.answererOf(this.decision, this.#timing)
  }

  get atMs(): number | undefined {
    return this.#timing?.atMs
  }

  get durationMs(): number {
    return this.#timing?.durationMs ?? 0
  }
}

/** The digest is computed only where somebody reads it. */
class DecidedEvent<Request> implements DecisionEvent<Request> {
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

  constructor(told: ToldDecision<Request>, answering: AnsweringStore) {
    const decided = new Decided(told, answering)
    const { binding } = decided
    this.decision = decided.decision
    this.checks = decided.checks
    this.request = told.request
    this.route = decided.route
    this.method = decided.method
    this.policy = binding?.policy
    this.key = binding?.identity ?? binding?.key
    this.answeredBy = decided.answeredBy
    this.atMs = decided.atMs
    this.durationMs = decided.durationMs
    this.isQueued = decided.isQueued
    this.#store = answering.store
  }

  get digest(): string | undefined {
    const binding = this.checks[bindingIndex(this.decision.outcomes, this.checks)]
    return binding && digestOf(binding.key, this.#store)
  }
}

function isLimited({ limit }: Outcome): boolean {
  return limit !== Number.POSITIVE_INFINITY
}

function notifyShadow<Request>(
  onShadow: NonNullable<JoinedObservers<Request>['onShadow']>,
  { decision, checks: asked, request, route, method }: ToldDecision<Request>,
  store: Store,
): void {
  const run = decision.shadow
  if (!run) return
  void andThen(run.decisions, (decisions) => {
    const { shadows } = divideChecks(asked)
    const checks = shadows.filter((_, index) => decisions[index]?.outcomes.length === 1)
    if (checks.length === 0) return
    notify(onShadow, {
      ...{ decision, outcomes: run.outcomes, checks, request, route, method },
      get digests() {
        return checks.map(({ key }) => digestOf(key, store))
      },
    })
  })
}
