import { engine } from '../engine/engine.ts'
import type { Check, GrantCheck } from '../model/check.ts'
import { digestOf } from '../model/digest.ts'
import type { Documents } from '../model/documents.ts'
import type { Policy } from '../model/policy.ts'
import type {
  Change,
  DecidingOp,
  ForgetOptions,
  Forgotten,
  Granted,
  Outcome,
  Store,
  StoreKeys,
} from '../model/store.ts'
import { knownFields, wholeNumber } from '../options/options.ts'
import { processWide } from '../runtime/process-wide.ts'
import { sleep } from '../waiting/timers.ts'
import { memoryDocuments } from './memory-documents.ts'
import { MemoryStates } from './memory-states.ts'

/** They take a few milliseconds. */
const keysWithoutPause = 1_000

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /**
   * Maximum number of keys. At the cap, expired keys are evicted first, then the least-used key in
   * a sample. An exhausted key is never evicted. When a whole sample is exhausted, new keys share
   * 64 overflow buckets.
   * @default 100_000
   */
  maxKeys?: number | undefined
}

/** The keys of a memory store. */
interface MemoryKeys extends StoreKeys {
  /**
   * Searches all keys, with pauses. Does not find keys of more than 256 characters.
   * @param store the store that created the digest @default a store without a secret
   */
  keyFor(digest: string, store?: Pick<Store, 'keys'>): Promise<{ readonly key: string } | undefined>
  forgetPolicy(policy: Policy, options: ForgetOptions): Forgotten
}

/** A store in this process: synchronous, bounded, without timers. */
export interface MemoryStore extends Store {
  readonly documents: Documents
  apply(op: DecidingOp, checks: readonly Check[]): readonly Outcome[]
  change(change: Change): readonly boolean[]
  grant(checks: readonly GrantCheck[]): readonly Granted[]
  readonly keys: MemoryKeys
  /** Number of keys held. Expired keys do not count, even before they are dropped. */
  readonly size: number
}

/** Creates a store that counts in memory. It reads `Date.now()` at each call: fake clocks work. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  knownFields(options, 'memoryStore', ['maxKeys'])
  const { maxKeys = 100_000 } = options
  const states = new MemoryStates(wholeNumber(maxKeys, { option: 'maxKeys' }, { min: 1 }))
  const store: MemoryStore = {
    name: 'memory',
    documents: memoryDocuments(),
    apply: (op, checks) => engine[op](states, checks, Date.now()),
    change: (change) => engine.change(states, change, Date.now()),
    grant: (checks) => engine.grant(states, checks, Date.now()),
    keys: {
      async keyFor(digest, ofStore = {}) {
        let looked = 0
        for (const key of states.keys()) {
          if (digestOf(key, ofStore) === digest) return { key }
          looked += 1
          if (looked % keysWithoutPause === 0) await sleep(0)
        }
        return undefined
      },
      limitOf: (check) => states.limitOf(check),
      forgetPolicy: ({ id }, { dryRun = false }) => ({
        keys: dryRun ? states.sizeOf(id) : states.forget(id),
      }),
    },
    get size() {
      return states.size
    },
  }
  memoryStores.add(store)
  return store
}

const memoryStores = processWide('@sluice/core/memory-stores/2', () => new WeakSet<object>())

/** Returns whether a store was created by `memoryStore`, and so is bounded and synchronous. */
export function isMemoryStore(store: unknown): store is MemoryStore {
  return typeof store === 'object' && store !== null && memoryStores.has(store)
}
