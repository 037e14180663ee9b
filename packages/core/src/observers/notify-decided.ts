import type { Check } from '../check.ts'
import { bindingIndex, type Decision } from '../decision.ts'
import { digestOf } from '../digest.ts'
import { isMemoryStore } from '../memory-store/memory-store.ts'
import { areEnforced, divideChecks } from '../policy/divide-checks.ts'
import type { Policy } from '../policy/policy.ts'
import { andThen } from '../runtime/maybe-promise.ts'
import type { Outcome, Store } from '../store.ts'
import { DecisionTiming, SharedTimer } from './decision-timer.ts'
import type { JoinedObservers } from './join-observers.ts'
import { notify } from './notify.ts'
import type { DecisionEvent, EventSource } from './observers.ts'

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

/** Notifies observers of the decisions of one limiter. */
export class DecisionNotifier<Request = unknown> {
  /** Tells whether somebody observes decisions. */
  readonly isObserved: boolean
  readonly #observers: Pick<JoinedObservers<Request>, 'onDecision' | 'onShadow'>
  readonly #store: AnsweringStore
  readonly #timer: SharedTimer | undefined

  constructor(observers: Pick<JoinedObservers<Request>, 'onDecision' | 'onShadow'>, store: Store) {
    this.isObserved = observers.onDecision !== undefined || observers.onShadow !== undefined
    this.#observers = observers
    this.#store = new AnsweringStore(store)
    this.#timer = isMemoryStore(store) ? new SharedTimer() : undefined
  }

  /** Begins the timing of a decision that the store alone comes to. */
  time(): DecisionTiming {
    return this.#timer ? this.#timer.begin() : new DecisionTiming()
  }

  /** Notifies of a decision, and of its policies in shadow as soon as they are known. */
  notify(decided: ToldDecision<Request>): void {
    const { onDecision, onShadow } = this.#observers
    if (onDecision) notify(onDecision, new DecidedEvent(decided, this.#store))
    if (onShadow) notifyShadow(onShadow, decided)
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
    this.#isRemote = store.submit !== undefined || store.denialTtlMs !== undefined
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

  constructor(
    { decision, timing, checks, request, route, method, isQueued = false }: ToldDecision<Request>,
    answering: AnsweringStore,
  ) {
    const enforced = areEnforced(checks) ? checks : divideChecks(checks).enforced
    const binding = enforced[bindingIndex(decision.outcomes)]
    this.decision = decision
    this.checks = enforced
    this.request = request
    this.route = route
    this.method = method
    this.policy = binding?.policy
    this.key = binding?.identity ?? binding?.key
    this.answeredBy = answering.answererOf(decision, timing)
    this.atMs = timing?.atMs
    this.durationMs = timing?.durationMs ?? 0
    this.isQueued = isQueued
    this.#store = answering.store
  }

  get digest(): string | undefined {
    const binding = this.checks[bindingIndex(this.decision.outcomes)]
    return binding && digestOf(binding.key, this.#store)
  }
}

function isLimited({ limit }: Outcome): boolean {
  return limit !== Number.POSITIVE_INFINITY
}

function notifyShadow<Request>(
  onShadow: NonNullable<JoinedObservers<Request>['onShadow']>,
  { decision, checks: asked, request, route, method }: ToldDecision<Request>,
): void {
  const run = decision.shadow
  if (!run) return
  void andThen(run.decisions, (decisions) => {
    const { shadows } = divideChecks(asked)
    const checks = shadows.filter((_, index) => decisions[index]?.outcomes.length === 1)
    if (checks.length === 0) return
    notify(onShadow, { decision, outcomes: run.outcomes, checks, request, route, method })
  })
}
