import { memoryStore, type Store } from '@sluice/core'
import { storeThrough } from '../support/store-through.ts'

/** A store that processes share, and that fails as a Redis does. */
export interface FlakyStore extends Store {
  isAway: boolean
  /** Forgets everything, as a Redis that comes back empty. */
  loseAll(): void
}

export function flakyStore(): FlakyStore {
  let memory = memoryStore()
  const store: FlakyStore = {
    ...storeThrough(
      () => memory,
      async () => awayIf(store.isAway),
    ),
    isAway: false,
    loseAll() {
      memory = memoryStore()
    },
  }
  return store
}

/** The same data as another process sees it, which may be cut off alone. */
export function seenFrom(store: FlakyStore): Store & { isAway: boolean } {
  const seen: Store & { isAway: boolean } = {
    ...storeThrough(store, async () => awayIf(seen.isAway)),
    isAway: false,
  }
  return seen
}

function awayIf(isAway: boolean): void {
  if (isAway) throw new Error('the store is away')
}
