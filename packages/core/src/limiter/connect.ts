import { type Road, roadOf } from '../deciders/road.ts'
import { DecisionNotifier } from '../observers/decision-notifier.ts'
import { joinObservers } from '../observers/join-observers.ts'
import type { Caller } from '../resilience/pending-ask.ts'
import { type SharedStore, sharedStoreOf } from '../resilience/shared-store.ts'
import type { LimiterOptions, LimiterSetup } from './limiter-options.ts'
import { failureReporter, listenToStore } from './listen-to-store.ts'

/** A limiter as it stands between its observers and its store. */
interface Connection {
  readonly road: Road
  readonly caller: Caller
  readonly notifier: DecisionNotifier<never>
  readonly shared: SharedStore
}

/** Connects a limiter with its store and its observers. */
export function connect(options: LimiterOptions, setup: LimiterSetup): Connection {
  const { policies, penalty, store, failureMode, notesLimits } = setup
  const all = penalty ? [...policies, penalty] : policies
  const observers = joinObservers(options)
  const shared = sharedStoreOf(store, setup.fallback)
  const onFailure = failureReporter(observers, failureMode)
  const caller = shared.callerOf({ ...setup, onFailure })
  listenToStore(options, { policies: all, store, shared })
  return {
    road: roadOf({ policies: all, notesLimits, shared, caller }),
    caller,
    notifier: new DecisionNotifier(observers, store),
    shared,
  }
}
