import { memoryStore, type Store } from '@sluice/core'

/** A store that processes share, and that fails as a Redis does. */
export interface FlakyStore extends Store {
  isAway: boolean
  /** Forgets everything, as a Redis that comes back empty. */
  loseAll(): void
}

export function flakyStore(): FlakyStore {
  let memory = memoryStore()
  return {
    isAway: false,
    loseAll() {
      memory = memoryStore()
    },
    async apply(op, checks) {
      if (this.isAway) throw new Error('the store is away')
      return memory.apply(op, checks)
    },
  }
}

/** The same data as another process sees it, which may be cut off alone. */
export function seenFrom(store: FlakyStore): Store & { isAway: boolean } {
  return {
    isAway: false,
    async apply(op, checks) {
      if (this.isAway) throw new Error('the store is away')
      return store.apply(op, checks)
    },
  }
}
