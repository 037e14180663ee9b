import type { Check } from './check.ts'
import type { Decision } from './decision.ts'
import type { ErrorCode, SluiceError } from './errors.ts'
import { isPromise } from './maybe-promise.ts'
import type { ResilienceEvent } from './resilience/resilience-event.ts'
import type { Outcome, StoreOp } from './store.ts'
import { warnOnce } from './warn.ts'

/** A request that was decided. */
export interface DecisionEvent {
  readonly decision: Decision
  /** What was asked. The keys are the identities themselves: redact them before they reach a log. */
  readonly checks: readonly Check[]
}

/** What the policies in shadow came to for a request that the enforced ones let pass. */
export interface ShadowEvent {
  /** What was answered to the request. */
  readonly decision: Decision
  /** One for each policy in shadow, each judged alone; `allowed: false`: it would have denied. Left out where the store failed. */
  readonly outcomes: readonly Outcome[]
  /** What was asked, in the order of the outcomes. The keys are the identities themselves: redact them before they reach a log. */
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

/** Called as things happen; what an observer throws is reported once as a warning, and changes no decision. */
export interface Observers {
  onDecision?(event: DecisionEvent): void
  /** Told once for each request with policies in shadow, when it is known what they would have done. */
  onShadow?(event: ShadowEvent): void
  onStoreError?(event: StoreErrorEvent): void
  onInvalid?(event: InvalidEvent): void
  /** Told of deadlines, of the circuit breaker and of the fallback of the store, which all limiters on it share. */
  onResilience?(event: ResilienceEvent): void
}

export const observerFields: readonly (keyof Observers)[] = [
  'onDecision',
  'onShadow',
  'onStoreError',
  'onInvalid',
  'onResilience',
]

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
