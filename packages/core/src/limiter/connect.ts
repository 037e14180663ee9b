import { type Road, roadOf } from '../deciders/road.ts'
import { joinObservers } from '../observers/join-observers.ts'
import { DecisionNotifier } from '../observers/notify-decided.ts'
import type { Caller } from '../resilience/pending-ask.ts'
import type { StoreAccess } from '../resilience/store-access.ts'
import { accessTo } from '../resilience/store-access.ts'
import type { LimiterOptions, LimiterSetup } from './limiter-options.ts'
import { failureReporter, listenToStore } from './listen-to-store.ts'

/** A limiter as it stands between its observers and its store. */
interface Connection {
  readonly road: Road
  readonly caller: Caller
  readonly notifier: DecisionNotifier<never>
  readonly access: StoreAccess
}

/** Connects a limiter with its store and its observers. */
export function connect(options: LimiterOptions, setup: LimiterSetup): Connection {
  const { policies, penalty, store, failureMode, notesLimits } = setup
  const all = penalty ? [...policies, penalty] : policies
  const observers = joinObservers(options)
  const access = accessTo(store, setup.fallback)
  const onFailure = failureReporter(observers, failureMode)
  const caller = access.callerOf({ ...setup, onFailure })
  listenToStore(options, { policies: all, store, access })
  return {
    road: roadOf({ policies: all, notesLimits, access, caller }),
    caller,
    notifier: new DecisionNotifier(observers, store),
    access,
  }
}
