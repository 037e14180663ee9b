import type { Check } from './check.ts'
import { type Decision, decisionOf } from './decision.ts'
import { type MemoryStore, memoryStore } from './memory-store/memory-store.ts'
import type { Store, StoreOp } from './store.ts'

/**
 * What happens while the store fails: `fallback` decides in bounded local memory, `open` lets everything pass, `closed` refuses
 * everything (503).
 */
export type FailureMode = 'fallback' | 'open' | 'closed'

export const failureModes: readonly FailureMode[] = ['fallback', 'open', 'closed']

/** The hint for clients that were refused because the store failed: nobody knows when it comes back. */
const unavailableRetryMs = 5_000

const fallbacks = new WeakMap<Store, MemoryStore>()

/** The local memory that stands in for a store; limiters that share the store share it too. */
export function fallbackOf(store: Store): MemoryStore {
  const known = fallbacks.get(store)
  if (known) return known
  const fallback = memoryStore()
  fallbacks.set(store, fallback)
  return fallback
}

/** Forgets keys in the local memory, where it was needed so far. */
export function resetFallback(store: Store, checks: readonly Check[]): void {
  fallbacks.get(store)?.apply('reset', checks)
}

/** The decision on checks that the store could not decide. */
export function decideWithout(
  mode: FailureMode,
  store: Store,
  { op, checks }: { op: StoreOp; checks: readonly Check[] },
): Decision {
  if (mode === 'fallback') return decisionOf(fallbackOf(store).apply(op, checks), 'fallback')
  if (mode === 'open')
    return { allowed: true, outcomes: [], retryAfterMs: 0, delayMs: 0, source: 'open' }
  return {
    allowed: false,
    outcomes: [],
    retryAfterMs: unavailableRetryMs,
    delayMs: 0,
    source: 'closed',
  }
}
