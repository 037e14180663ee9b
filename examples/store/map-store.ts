import type { Store } from '@sluice/core'
import { engine, stateKey, WorkingSet } from '@sluice/core/backend'

export interface MapStoreOptions {
  /** Milliseconds since 1970. @default Date.now */
  readonly clock?: () => number
}

/** Counts in a `Map` of strings, like a store based on a key-value database. */
export function mapStore({ clock = () => Date.now() }: MapStoreOptions = {}): Store {
  const stored = new Map<string, string>()
  let changing = Promise.resolve()

  /** One request after another: a database would use a transaction or locks here. */
  function transaction<T>(
    keys: readonly string[],
    decide: (states: WorkingSet, now: number) => T,
  ): Promise<T> {
    const decided = changing.then(async () => {
      const states = new WorkingSet(await load(stored, keys))
      const now = clock()
      const answer = decide(states, now)
      await save(stored, states.changed(now))
      return answer
    })
    changing = decided.then(ignore, ignore)
    return decided
  }

  return {
    apply: (op, checks) =>
      transaction(checks.map(stateKey), (states, now) => engine[op](states, checks, now)),
    grant: (checks) =>
      transaction(checks.map(stateKey), (states, now) => engine.grant(states, checks, now)),
    change: (change) =>
      transaction(change.checks.map(stateKey), (states, now) => engine.change(states, change, now)),
  }
}

function ignore(): void {
  // The caller receives the error. Either way, the next request starts after it.
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

/** A real database also drops a key at its `endsAt`, for example with a TTL. */
async function save(
  stored: Map<string, string>,
  changed: ReturnType<WorkingSet['changed']>,
): Promise<void> {
  for (const { key, text } of changed) {
    if (text === undefined) stored.delete(key)
    else stored.set(key, text)
  }
}
