import { warnOnce } from '../options/warn.ts'
import { isPromise } from '../runtime/maybe-promise.ts'
import { processWide } from '../runtime/process-wide.ts'
import {
  type CountedDecision,
  type ObserverOptions,
  type Observers,
  observerList,
} from './observers.ts'

/** Counts decisions in place of an observer. It must not throw. */
type DecisionCounter = (decision: CountedDecision) => void

/** The observers of a list as one; a field without an observer stays `undefined`. */
export type JoinedObservers<Request> = {
  readonly [Field in TellingField]: Observers<Request>[Field] | undefined
} & {
  /** Calls the functions that `countInstead` put in place of observers. */
  readonly countDecision: DecisionCounter | undefined
}

/** The events of a limiter's callers; its store emits the others. */
type TellingField = 'onDecision' | 'onShadow' | 'onStoreError' | 'onInvalid' | 'onSkip'

/** Counters by their `onDecision`. A function that wraps `onDecision` still gets events. */
const counters = processWide(
  '@sluice/core/decision-counters/1',
  () => new WeakMap<object, DecisionCounter>(),
)

/** Has limiters call `count` in place of `onDecision`, as an event costs more than counting. */
export function countInstead(
  onDecision: NonNullable<Observers['onDecision']>,
  count: DecisionCounter,
): void {
  counters.set(onDecision, count)
}

/** Joins observers, so that all are called even if one throws. */
export function joinObservers<Request>(
  options: ObserverOptions<Request>,
): JoinedObservers<Request> {
  const all = observerList(options)
  const counting = all.map(({ onDecision }) => onDecision && counters.get(onDecision))
  return {
    onDecision: joined(
      all.map((each, i) => (counting[i] ? undefined : each.onDecision?.bind(each))),
    ),
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
