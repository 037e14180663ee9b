import { notify } from './notify.ts'
import type { ObserverOptions, Observers } from './observers.ts'

/**
 * The observers of a list and of the shorthand as one; a field without an observer stays
 * `undefined`.
 */
export type JoinedObservers<Request> = {
  readonly [Field in TellingField]: Observers<Request>[Field] | undefined
}

/** The events of a limiter's callers; its store emits the others. */
type TellingField = 'onDecision' | 'onShadow' | 'onStoreError' | 'onInvalid' | 'onSkip'

/** Joins observers, so that all are called even if one throws. */
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
