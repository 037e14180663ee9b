import { processWide } from '../runtime/process-wide.ts'
import { notify } from './notify.ts'
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

/**
 * Has limiters call `count` in place of this function `onDecision`. An event for each decision
 * would cost more than counting it.
 */
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
