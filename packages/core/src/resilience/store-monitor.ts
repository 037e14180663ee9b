import type { FailureMode } from '../model/policy.ts'
import type { ResilienceEvent } from '../model/resilience-event.ts'
import type { Store, StoreOp } from '../model/store.ts'
import type { ResilienceCounters } from '../model/store-health.ts'
import { type JoinedObservers, notify } from '../observers/join-observers.ts'
import type { Observers } from '../observers/observers.ts'
import { isSluiceError, SluiceError } from '../options/errors.ts'
import { onOneLine, quote } from '../options/options.ts'
import { warnOnce } from '../options/warn.ts'

/** Counts the resilience events of a store, and notifies its limiters' observers. */
export class StoreMonitor {
  readonly counters: ResilienceCounters = {
    deadlinesMissed: 0,
    breakerOpened: 0,
    fallbacksEntered: 0,
    decisionsWithout: 0,
    lateKept: 0,
    lateRefunded: 0,
    unitsReconciled: 0,
    clockSkews: 0,
  }
  readonly #observers = new Set<Observers>()
  readonly #callObservers = new WeakMap<Store, WeakSet<Observers>>()
  #missed = 0

  /** Limiters may share an observer: it gets each event once. */
  observe(observer: Observers, store: Store): void {
    if (observer.onResilience) this.#observers.add(observer)
    const known = this.#callObservers.get(store) ?? new WeakSet()
    this.#callObservers.set(store, known)
    if (!observer.onStoreCall || known.has(observer)) return
    known.add(observer)
    store.telemetry?.observeCalls?.((call) => notify(observer.onStoreCall?.bind(observer), call))
  }

  tell(event: ResilienceEvent): void {
    const { counters } = this
    const { type } = event
    if (type === 'deadline-missed') counters.deadlinesMissed += event.checks
    else if (type === 'breaker') counters.breakerOpened += event.state === 'open' ? 1 : 0
    else if (type === 'fallback-entered') counters.fallbacksEntered += 1
    else if (type === 'reconciled') counters.unitsReconciled += event.units
    else if (type === 'clock-skew') counters.clockSkews += 1
    else if (type === 'late-reply')
      counters[event.charge === 'kept' ? 'lateKept' : 'lateRefunded'] += 1
    for (const observer of this.#observers) notify(observer.onResilience?.bind(observer), event)
  }

  /** Counts a missed deadline. Deadlines that pass at the same time are one event. */
  tellMissed(): void {
    this.#missed += 1
    if (this.#missed > 1) return
    void Promise.resolve().then(() => {
      const checks = this.#missed
      this.#missed = 0
      this.tell({ type: 'deadline-missed', checks })
    })
  }
}

/** Returns a function that reports store failures: to observers, or else as one warning. */
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
      `${error.message}; failureMode '${failureMode}' decides instead (onStoreError reports each failure)`,
      error.code,
    )
  }
}

/** Returns the error with which limiters reject if the store failed. */
export function storeError(error: unknown): SluiceError {
  if (isSluiceError(error)) return error
  const reason = error instanceof Error ? error.message : quote(error)
  return new SluiceError('SLUICE_STORE_FAILED', `the store did not decide: ${onOneLine(reason)}`, {
    cause: error,
  })
}
