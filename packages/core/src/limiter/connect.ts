import { appliedLimitsOf } from '../deciders/applied-limits.ts'
import { type Road, roadOf } from '../deciders/road.ts'
import { DecisionNotifier } from '../observers/decision-notifier.ts'
import { joinObservers, notify } from '../observers/join-observers.ts'
import { observerList } from '../observers/observers.ts'
import { versionBeingMade } from '../policy/policy-registry.ts'
import { Caller } from '../resilience/caller.ts'
import { sharedStoreOf } from '../resilience/shared-store.ts'
import { failureReporter } from '../resilience/store-monitor.ts'
import type { LimiterOptions, LimiterSetup } from './limiter-options.ts'

interface Connection {
  readonly road: Road
  readonly caller: Caller
  readonly notifier: DecisionNotifier<never>
}

/** Connects a limiter to its store and its observers. */
export function connect(options: LimiterOptions, setup: LimiterSetup): Connection {
  const { policies, penalty, store, failureMode, notesLimits } = setup
  const all = penalty ? [...policies, penalty] : policies
  const observers = joinObservers(options)
  const shared = sharedStoreOf(store, setup.fallback)
  const limits = notesLimits ? appliedLimitsOf(store) : undefined
  const onFailure = failureReporter(observers, failureMode)
  const caller = new Caller({ ...setup, onFailure }, shared)
  const event = {
    policies: all,
    space: store.space ?? store,
    version: versionBeingMade(),
    region: store.region,
    storeHealth: () => shared.health(store),
  }
  // An observer of several limiters gets the events of their store once.
  for (const each of observerList(options)) {
    shared.monitor.observe(each, store)
    notify(each.onLimiter?.bind(each), event)
  }
  return {
    road: roadOf(all, caller, limits),
    caller,
    notifier: new DecisionNotifier(observers, store),
  }
}
