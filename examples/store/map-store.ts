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

  /** One request after another: here a database has its transaction, or its locks. */
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
  // The caller gets the error. The next request begins after it either way.
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
