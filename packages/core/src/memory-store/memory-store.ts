import type { Check } from '../check.ts'
import { engine } from '../engine/engine.ts'
import { knownFields, orDefault, wholeNumber } from '../options/options.ts'
import { processWide } from '../runtime/process-wide.ts'
import type { Outcome, Store, StoreOp } from '../store.ts'
import { memoryDocuments } from './memory-documents.ts'
import { MemoryStates } from './memory-states.ts'

export interface MemoryStoreOptions {
  /**
   * The most keys that are held. At the cap, expired ones go first, then the least used of a
   * sample; one that is exhausted never goes: when a whole sample is, new keys share one of 64
   * overflow buckets.
   * @default 100_000
   */
  maxKeys?: number
}

/** A store in this process: synchronous, bounded, without timers. */
export interface MemoryStore extends Store {
  apply(op: StoreOp, checks: readonly Check[]): readonly Outcome[]
  /** Keys held now, those not counted that have expired and not yet been swept. */
  readonly size: number
}

/**
 * Counts in memory. The clock is `Date.now()`, read at each call, so that a faked one is obeyed.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  knownFields(options, 'memoryStore', ['maxKeys'])
  const states = new MemoryStates(
    wholeNumber(orDefault(options.maxKeys, 100_000), { option: 'maxKeys' }, { min: 1 }),
  )
  const store = {
    name: 'memory',
    documents: memoryDocuments(),
    apply: (op: StoreOp, checks: readonly Check[]) => engine[op](states, checks, Date.now()),
    get size() {
      return states.size
    },
  }
  made.add(store)
  return store
}

const made = processWide('@sluice/core/memory-stores/1', () => new WeakSet<object>())

/** Tells whether a store was made by `memoryStore`, and so is bounded and answers at once. */
export function isMemoryStore(store: unknown): store is MemoryStore {
  return typeof store === 'object' && store !== null && made.has(store)
}
