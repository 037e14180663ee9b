import type { FailureMode, Policy } from '../model/policy.ts'
import type { Store, StoreCall, StoreOp } from '../model/store.ts'
import type { JoinedObservers } from '../observers/join-observers.ts'
import { notify } from '../observers/notify.ts'
import { type ObserverOptions, observerList } from '../observers/observers.ts'
import { warnOnce } from '../options/warn.ts'
import { versionBeingMade } from '../policy/policy-registry.ts'
import type { SharedStore } from '../resilience/shared-store.ts'
import { processWide } from '../runtime/process-wide.ts'
import { storeError } from './arguments.ts'

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
export function listenToStore(
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

/** Returns what tells of each request that the store failed; one warning, if nobody observes. */
export function failureReporter(
  { onStoreError }: Pick<JoinedObservers<never>, 'onStoreError'>,
  failureMode: FailureMode,
): (op: StoreOp, error: unknown) => void {
  return (op, cause) => {
    const error = storeError(cause)
    if (onStoreError) {
      notify(onStoreError, { op, error })
      return
    }
    warnOnce(
      `${error.message}; failureMode '${failureMode}' decides instead (onStoreError tells of every failure)`,
      error.code,
    )
  }
}

function listenToCalls(store: Store, observer: (call: StoreCall) => void, identity: object): void {
  const known = callObservers.get(store) ?? new WeakSet()
  callObservers.set(store, known)
  if (known.has(identity)) return
  known.add(identity)
  store.telemetry?.observeCalls?.((call) => notify(observer, call))
}
