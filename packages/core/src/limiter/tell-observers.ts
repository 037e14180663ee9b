import type { Check } from '../check.ts'
import { bindingIndex, type Decision } from '../decision.ts'
import { digestOf } from '../digest.ts'
import type { Policy } from '../policy/policy.ts'
import { versionBeingMade } from '../policy/policy-registry.ts'
import type { StoreAccess } from '../resilience/store-access.ts'
import { andThen } from '../runtime/maybe-promise.ts'
import { processWide } from '../runtime/process-wide.ts'
import type { Store, StoreCall } from '../store.ts'
import { divideChecks } from './divide-checks.ts'
import { joined, notify } from './notify.ts'
import type { DecisionEvent, EventSource, ObserverOptions, Observers } from './observers.ts'

/**
 * The observers of a list and of the shorthand as one; a field is left `undefined` where nobody
 * observes.
 */
export type JoinedObservers<Request> = {
  readonly [Field in TellingField]: Observers<Request>[Field] | undefined
}

/** The events of a limiter's callers; its store emits the others. */
type TellingField = 'onDecision' | 'onShadow' | 'onStoreError' | 'onInvalid' | 'onSkip'

/** Joins observers, so that each is told although another one throws. */
export function joinObservers<Request>(
  options: ObserverOptions<Request>,
): JoinedObservers<Request> {
  const all = [options, ...(options.observers ?? [])]
  return {
    onDecision: joined(all.map((each) => each.onDecision?.bind(each))),
    onShadow: joined(all.map((each) => each.onShadow?.bind(each))),
    onStoreError: joined(all.map((each) => each.onStoreError?.bind(each))),
    onInvalid: joined(all.map((each) => each.onInvalid?.bind(each))),
    onSkip: joined(all.map((each) => each.onSkip?.bind(each))),
  }
}

/** The policies and the store that observers of a limiter hear of. */
interface Listened {
  readonly policies: readonly Policy[]
  readonly store: Store
  readonly access: StoreAccess
}

const callObservers = processWide(
  '@sluice/core/call-observers/1',
  () => new WeakMap<Store, WeakSet<object>>(),
)

/**
 * Has the observers of a limiter told of its store: each one once, whatever the number of limiters
 * on the store.
 */
export function listenToStore(
  options: ObserverOptions<never>,
  { policies, store, access }: Listened,
): void {
  const { onResilience, onStoreCall, onLimiter, observers = [] } = options
  const space = store.space ?? store
  const version = versionBeingMade()
  const told = { policies, space, version, storeHealth: () => access.health(store) }
  if (onResilience) access.observe(onResilience)
  if (onStoreCall) listenToCalls(store, onStoreCall, onStoreCall)
  notify(onLimiter, told)
  for (const each of observers) {
    if (each.onResilience) access.observe(each.onResilience.bind(each), each)
    if (each.onStoreCall) listenToCalls(store, each.onStoreCall.bind(each), each)
    notify(each.onLimiter?.bind(each), told)
  }
}

function listenToCalls(store: Store, observer: (call: StoreCall) => void, identity: object): void {
  const known = callObservers.get(store) ?? new WeakSet()
  callObservers.set(store, known)
  if (known.has(identity)) return
  known.add(identity)
  store.observeCalls?.((call) => notify(observer, call))
}

/** A decision to tell observers of. */
export interface Told<Request> extends EventSource<Request> {
  readonly decision: Decision
  /** All that was asked, policies in shadow too. */
  readonly checks: readonly Check[]
  readonly store: Store
  /** Timing of the decision; `undefined` if no policy was asked. */
  readonly timing: DecisionTiming | undefined
  /** @default false */
  readonly isQueued?: boolean | undefined
}

/** Timing of a decision. */
export interface DecisionTiming {
  /** Time of the decision: ms of `performance.now()`. */
  readonly atMs: number
  readonly durationMs: number
  /** True if the decision came at once, without a wait for the store. */
  readonly isImmediate: boolean
}

/** The digest is computed only where somebody reads it. */
class DecisionTold<Request> implements DecisionEvent<Request> {
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
  readonly #counted: string | undefined

  constructor(told: Told<Request>, checks: readonly Check[]) {
    const { decision, timing } = told
    const binding = checks[bindingIndex(decision.outcomes)]
    this.decision = decision
    this.checks = checks
    this.request = told.request
    this.route = told.route
    this.method = told.method
    this.policy = binding?.policy
    this.key = binding?.identity ?? binding?.key
    this.answeredBy = answeredBy(told)
    this.atMs = timing?.atMs
    this.durationMs = timing?.durationMs ?? 0
    this.isQueued = told.isQueued ?? false
    this.#store = told.store
    this.#counted = binding?.key
  }

  get digest(): string | undefined {
    return this.#counted === undefined ? undefined : digestOf(this.#counted, this.#store)
  }
}

function answeredBy<Request>({ decision, store, timing }: Told<Request>): string {
  if (decision.source !== 'store') return decision.source
  if (timing === undefined) return 'guard'
  const isRemote = store.submit !== undefined || store.denialTtlMs !== undefined
  if (isRemote && timing.isImmediate) return decision.allowed ? 'guard' : 'denial-cache'
  return store.name ?? 'store'
}

/**
 * Tells observers of a decision, and of its policies in shadow as soon as they are known. Call it
 * only where somebody observes.
 */
export function notifyDecided<Request>(
  { onDecision, onShadow }: Pick<JoinedObservers<Request>, 'onDecision' | 'onShadow'>,
  told: Told<Request>,
): void {
  const { decision, request, route, method } = told
  const { enforced, shadows } = divideChecks(told.checks)
  if (onDecision) notify(onDecision, new DecisionTold(told, enforced))
  const run = decision.shadow
  if (!onShadow || !run) return
  void andThen(run.decisions, (decisions) => {
    const checks = shadows.filter((_, index) => decisions[index]?.outcomes.length === 1)
    if (checks.length === 0) return
    notify(onShadow, { decision, outcomes: run.outcomes, checks, request, route, method })
  })
}
