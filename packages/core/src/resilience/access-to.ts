import { type MemoryStore, memoryStore } from '../memory-store/memory-store.ts'
import type { Store } from '../model/store.ts'
import { SluiceError } from '../options/errors.ts'
import { processWide } from '../runtime/process-wide.ts'
import { StoreAccess } from './store-access.ts'

const accesses = processWide('@sluice/core/accesses/3', () => new WeakMap<object, StoreAccess>())

/**
 * Returns the access to a store. All limiters of a store share it, and all stores that count in the
 * same place.
 * @param fallback local memory; the first limiter that names one decides for all
 * @throws SluiceError when another fallback is in use already
 */
export function accessTo(store: Store, fallback?: MemoryStore): StoreAccess {
  const space = store.space ?? store
  const known = accesses.get(space)
  if (known && fallback && known.memory !== fallback) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      'fallback: another limiter on this store has a fallback already, or none was given; give all of them the same',
    )
  }
  const access = known ?? new StoreAccess(fallback ?? memoryStore())
  accesses.set(space, access)
  access.listenTo(store)
  return access
}
