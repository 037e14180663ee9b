import type { Store } from '@sluice/core'
import { engine, stateKey, WorkingSet } from '@sluice/core/backend'

export interface MapStoreOptions {
  /** Milliseconds since 1970. @default Date.now */
  readonly clock?: () => number
}

/** Counts in a `Map` of texts, as a store over a key-value database would. */
export function mapStore({ clock = () => Date.now() }: MapStoreOptions = {}): Store {
  const stored = new Map<string, string>()
  let changing = Promise.resolve()

  return {
    apply(op, checks) {
      // One request after another: here a database has its transaction, or its locks.
      const outcomes = changing.then(async () => {
        const found = await load(stored, checks.map(stateKey))
        const now = clock()
        const states = new WorkingSet(found)
        const decided = engine[op](states, checks, now)
        await save(stored, states.changed(now))
        return decided
      })
      changing = outcomes.then(ignore, ignore)
      return outcomes
    },
  }
}

function ignore(): void {
  // The caller of `apply` gets the error. The next request begins after it either way.
}

async function load(
  stored: ReadonlyMap<string, string>,
  keys: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for (const key of keys) {
    const text = stored.get(key)
    if (text !== undefined) found.set(key, text)
  }
  return found
}

/** A real database also forgets a key at its `endsAt`, such as by a time to live. */
async function save(
  stored: Map<string, string>,
  changed: ReturnType<WorkingSet['changed']>,
): Promise<void> {
  for (const { key, text } of changed) {
    if (text === undefined) stored.delete(key)
    else stored.set(key, text)
  }
}
