import { type Road, roadOf } from '../deciders/road.ts'
import type { Policy } from '../model/policy.ts'
import type { Store, StoreCall } from '../model/store.ts'
import { DecisionNotifier } from '../observers/decision-notifier.ts'
import { joinObservers, notify } from '../observers/join-observers.ts'
import { type ObserverOptions, observerList } from '../observers/observers.ts'
import { versionBeingMade } from '../policy/policy-registry.ts'
import type { Caller } from '../resilience/pending-ask.ts'
import { type SharedStore, sharedStoreOf } from '../resilience/shared-store.ts'
import { failureReporter } from '../resilience/store-monitor.ts'
import { processWide } from '../runtime/process-wide.ts'
import type { LimiterOptions, LimiterSetup } from './limiter-options.ts'

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

/** The policies and the store that observers of a limiter hear of. */
interface Listened {
  readonly policies: readonly Policy[]
  readonly store: Store
  readonly shared: SharedStore
}

const callObservers = processWide(
  '@sluice/core/call-observers/1',
  () => new WeakMap<Store, WeakSet<object>>(),
)

/**
 * Passes the events of a store to the observers of its limiters: to each observer once, whatever
 * the number of limiters.
 */
function listenToStore(
  options: ObserverOptions<never>,
  { policies, store, shared }: Listened,
): void {
  const space = store.space ?? store
  const version = versionBeingMade()
  const { region } = store
  const event = { policies, space, version, region, storeHealth: () => shared.health(store) }
  for (const each of observerList(options)) {
    if (each.onResilience) shared.monitor.observe(each.onResilience.bind(each), each)
    if (each.onStoreCall) listenToCalls(store, each.onStoreCall.bind(each), each)
    notify(each.onLimiter?.bind(each), event)
  }
}

function listenToCalls(store: Store, observer: (call: StoreCall) => void, identity: object): void {
  const known = callObservers.get(store) ?? new WeakSet()
  callObservers.set(store, known)
  if (known.has(identity)) return
  known.add(identity)
  store.telemetry?.observeCalls?.((call) => notify(observer, call))
}
