import { warnOnce } from '../options/warn.ts'
import { isPromise } from '../runtime/maybe-promise.ts'
import { processWide } from '../runtime/process-wide.ts'
import { type ObserverOptions, type Observers, observerList } from './observers.ts'

type OnDecision = NonNullable<Observers['onDecision']>

/** Several observers as one; a method without an observer stays `undefined`. */
export interface JoinedObservers<Request> extends Pick<Observers<Request>, TellingField> {
  /** Calls the functions that replaced observers by `countInstead`: without the request. */
  readonly countDecision: OnDecision | undefined
}

/** Events from a limiter's callers; its store emits the others. */
type TellingField = 'onDecision' | 'onShadow' | 'onStoreError' | 'onInvalid' | 'onSkip'

/** Counters by their `onDecision`. A function that wraps `onDecision` still receives events. */
const counters = processWide(
  '@sluice/core/decision-counters/1',
  () => new WeakMap<object, OnDecision>(),
)

/**
 * Makes limiters call `count` instead of `onDecision`: an event costs more than counting.
 * @param count gets no request. It must not throw
 */
export function countInstead(onDecision: OnDecision, count: OnDecision): void {
  counters.set(onDecision, count)
}

/** Joins observers, so that all are called even if one throws. */
export function joinObservers<Request>(
  options: ObserverOptions<Request>,
): JoinedObservers<Request> {
  const all = observerList(options)
  const counting = all.map(({ onDecision }) => onDecision && counters.get(onDecision))
  const notCounting = all.filter((_, index) => !counting[index])
  return {
    onDecision: joined(notCounting.map((each) => each.onDecision?.bind(each))),
    countDecision: joined(counting),
    onShadow: joined(all.map((each) => each.onShadow?.bind(each))),
    onStoreError: joined(all.map((each) => each.onStoreError?.bind(each))),
    onInvalid: joined(all.map((each) => each.onInvalid?.bind(each))),
    onSkip: joined(all.map((each) => each.onSkip?.bind(each))),
  }
}

/** One function that calls all observers, even if one throws. */
export function joined<Event>(
  observers: readonly (((event: Event) => void) | undefined)[],
): ((event: Event) => void) | undefined {
  const present = observers.filter((observer) => observer !== undefined)
  if (present.length < 2) return present[0]
  return (event) => {
    for (const observer of present) notify(observer, event)
  }
}

/** Notifies one observer; if it throws, the client's response must not change. */
export function notify<Event>(observer: ((event: Event) => void) | undefined, event: Event): void {
  if (!observer) return
  try {
    // For TypeScript, an async function is assignable to one that returns nothing.
    const result: unknown = observer(event)
    if (isPromise(result)) result.then(undefined, reportThrown)
  } catch (error) {
    reportThrown(error)
  }
}

function reportThrown(error: unknown): void {
  const reason = error instanceof Error ? error.message : 'not an Error'
  warnOnce(`an observer threw: ${reason}`, 'observer')
}
