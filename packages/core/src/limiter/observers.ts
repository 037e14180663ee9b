import type { Check } from '../check.ts'
import { bindingIndex, type Decision } from '../decision.ts'
import type { ErrorCode, SluiceError } from '../options/errors.ts'
import { warnOnce } from '../options/warn.ts'
import type { Policy } from '../policy/policy.ts'
import type { ResilienceEvent } from '../resilience/resilience-event.ts'
import { andThen, isPromise } from '../runtime/maybe-promise.ts'
import type { Outcome, StoreOp } from '../store.ts'
import { divideChecks } from './divide-checks.ts'

/** The request that an event is about. */
interface EventSource<Request = unknown> {
  /** The framework's request; `undefined` where code called a limiter itself. */
  readonly request: Request | undefined
  /**
   * Method and pattern of its route, `GET /users/:id`, or its rule in `routes`; `undefined` while
   * no route is matched.
   */
  readonly route: string | undefined
}

/** A request that was decided. */
export interface DecisionEvent<Request = unknown> extends EventSource<Request> {
  readonly decision: Decision
  /**
   * The policies that were asked, each with its key, in the order of the outcomes. Redact keys
   * before they reach a log.
   */
  readonly checks: readonly Check[]
  /**
   * The policy that denies for the longest; where none denies, the one with the fewest units left;
   * `undefined` where none was asked.
   */
  readonly policy: Policy | undefined
  /**
   * The key that `policy` counted, as its resolver found it: an address, an API key or a user.
   * Redact it before it reaches a log.
   */
  readonly key: string | undefined
}

/** The outcomes of the policies in shadow, for a request that the enforced policies let pass. */
export interface ShadowEvent<Request = unknown> extends EventSource<Request> {
  /** The decision of the request. */
  readonly decision: Decision
  /**
   * One for each policy in shadow, each judged alone; `allowed: false`: it would have denied. Left
   * out where the store failed.
   */
  readonly outcomes: readonly Outcome[]
  /**
   * The checks, in the order of the outcomes. The keys are the identities themselves: redact them
   * before they reach a log.
   */
  readonly checks: readonly Check[]
}

/** A store that could not decide; the failure mode answered instead. */
export interface StoreErrorEvent {
  readonly op: StoreOp
  readonly error: SluiceError
}

/** A value from outside that could not be used, and what stood in for it. */
export interface InvalidEvent {
  readonly code: ErrorCode
  /** Names the place and the rule; never contains a key. */
  readonly message: string
}

/**
 * Called as things happen; what an observer throws is reported once as a warning, and changes no
 * decision.
 */
export interface Observers<Request = unknown> {
  /**
   * Called once for each decision, allowed or denied, with the request, its route, the policy that
   * decides and the key: the place to log denials.
   * @example
   * onDecision: ({ decision, request, policy, key }) => { if (!decision.allowed) request?.log.warn({ policy: policy?.name, key: redact(key) }) }
   */
  onDecision?(event: DecisionEvent<Request>): void
  /**
   * Called once for each request with policies in shadow, when it is known what they would have
   * done.
   */
  onShadow?(event: ShadowEvent<Request>): void
  /**
   * Called for each check that the store failed, with an error whose `code` says why. Without it
   * the first failure is a warning.
   */
  onStoreError?(event: StoreErrorEvent): void
  /**
   * Called when a function of yours yields a value that cannot be used, and a default stood in.
   * Without it the first one is a warning.
   */
  onInvalid?(event: InvalidEvent): void
  /**
   * Called when a deadline is missed, the circuit breaker changes, or the fallback begins or ends.
   * All limiters on a store share these events.
   */
  onResilience?(event: ResilienceEvent): void
}

export const observerFields: readonly (keyof Observers)[] = [
  'onDecision',
  'onShadow',
  'onStoreError',
  'onInvalid',
  'onResilience',
]

/** A decision to tell observers of. */
export interface Told<Request> extends EventSource<Request> {
  readonly decision: Decision
  /** All that was asked, policies in shadow too. */
  readonly checks: readonly Check[]
}

/**
 * Tells observers of a decision, and of its policies in shadow as soon as they are known. Call it
 * only where somebody observes.
 */
export function notifyDecided<Request>(
  { onDecision, onShadow }: Pick<Observers<Request>, 'onDecision' | 'onShadow'>,
  { decision, checks: asked, request, route }: Told<Request>,
): void {
  const { enforced: checks, shadows } = divideChecks(asked)
  if (onDecision) {
    const binding = checks[bindingIndex(decision.outcomes)]
    const { policy, key, identity = key } = binding ?? {}
    notify(onDecision, { decision, checks, request, route, policy, key: identity })
  }
  const run = decision.shadow
  if (!onShadow || !run) return
  void andThen(run.decisions, (decisions) => {
    const told = shadows.filter((_, index) => decisions[index]?.outcomes.length === 1)
    if (told.length === 0) return
    notify(onShadow, { decision, outcomes: run.outcomes, checks: told, request, route })
  })
}

/** Tells one observer; an observer that throws must not change what a client is answered. */
export function notify<Event>(observer: ((event: Event) => void) | undefined, event: Event): void {
  if (!observer) return
  try {
    // An async function is one that returns nothing, to TypeScript.
    const result: unknown = observer(event)
    if (isPromise(result)) result.then(undefined, reportThrown)
  } catch (error) {
    reportThrown(error)
  }
}

function reportThrown(error: unknown): void {
  const reason = error instanceof Error ? error.message : 'no Error'
  warnOnce(`an observer threw: ${reason}`, 'observer')
}
