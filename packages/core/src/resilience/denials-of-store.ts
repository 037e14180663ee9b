import type { Check } from '../model/check.ts'
import type { Cancellation, Outcome, Store, StoreOp } from '../model/store.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { processWide } from '../runtime/process-wide.ts'
import { Denials } from './denials.ts'

const known = processWide('@sluice/core/denials/1', () => new WeakMap<Store, Denials>())

/** Returns the denials of a store, or `undefined` when none may be repeated. */
export function denialsOf(store: Store): Denials | undefined {
  const { ttlMs = 0 } = store.denials ?? {}
  if (ttlMs === 0) return undefined
  const denials = known.get(store) ?? new Denials(store, ttlMs)
  known.set(store, denials)
  return denials
}

/**
 * Applies an operation that changes keys, and forgets their denials when the store is asked. Unless
 * the operation only takes units, it forgets them again when the store has answered.
 */
export function applyChange(
  store: Store,
  op: StoreOp,
  checks: readonly Check[],
  cancellation?: Cancellation,
): MaybePromise<readonly Outcome[]> {
  const denials = denialsOf(store)
  denials?.forget(op, checks)
  const outcomes = store.apply(op, checks, cancellation)
  if (denials && op !== 'charge' && isPromise(outcomes)) {
    const done = () => denials.forget(op, checks)
    outcomes.then(done, done)
  }
  return outcomes
}
