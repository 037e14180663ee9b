import type { KeyState } from '../algorithms/algorithm.ts'
import { algorithmOf } from '../algorithms/table.ts'
import type { States } from '../engine/engine.ts'
import type { Check } from '../model/check.ts'
import { digestIdentity, longKeyLength } from '../model/digest.ts'
import type { Policy } from '../model/policy.ts'
import { fnv1a } from '../runtime/hash.ts'
import { ShardedMap } from './sharded-map.ts'

/** The keys of one policy. There are many, so a state also serves as its key's incarnation. */
interface Table {
  readonly policy: Policy
  readonly states: ShardedMap<KeyState>
}

/** A key with its state. */
interface Sampled {
  readonly table: Table
  readonly key: string
  readonly state: KeyState
}

const sampleSize = 16
const sweptPerAdd = 2
const overflowBuckets = 64

/** The states of a memory store, by policy and key, bounded in number. */
export class MemoryStates implements States {
  readonly #maxKeys: number
  readonly #tables = new Map<string, Table>()
  readonly #overflow = new Map<string, KeyState>()
  readonly #round: Table[] = []
  /** The table used last: most stores have one. */
  #latest: Table | undefined
  #turn = 0
  #size = 0
  /** Changes whenever a key is added or dropped. */
  changes = 0

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  get size(): number {
    return this.#size
  }

  /** All keys held, once per policy; long ones are omitted. */
  *keys(): Iterable<string> {
    for (const { states } of [...this.#tables.values()]) {
      for (const key of states.keys()) if (key.length < longKeyLength) yield key
    }
  }

  /** Returns the limit of the last request of a key; `undefined` for a key that shares a state. */
  limitOf({ policy, key }: Pick<Check, 'policy' | 'key'>): number | undefined {
    return this.#tables.get(policy.id)?.states.get(boundedKey(key))?.limit
  }

  sizeOf(policyId: string): number {
    return this.#tables.get(policyId)?.states.size ?? 0
  }

  /** Drops all keys of a policy, and its overflow buckets. Returns the number of keys. */
  forget(policyId: string): number {
    for (const key of this.#overflow.keys()) {
      if (key.startsWith(`${policyId} `)) this.#overflow.delete(key)
    }
    const table = this.#tables.get(policyId)
    if (!table) return 0
    const { size } = table.states
    this.#size -= size
    this.changes += size
    this.#dropTable(table)
    return size
  }

  /** Returns the state of a check's key, or of an overflow bucket if there is no room. */
  get(check: Check, now: number): KeyState | undefined {
    const own = this.#known(check)?.states.get(boundedKey(check.key))
    if (own !== undefined || this.#size < this.#maxKeys || this.#dispensable(now)) return own
    return sharesBuckets(check) ? this.#overflow.get(overflowKey(check)) : undefined
  }

  /** Starts a new incarnation of a key that held nothing, or whose units have all expired. */
  begin(check: Check, now: number): KeyState {
    const table = this.#table(check)
    const key = boundedKey(check.key)
    const state = algorithmOf(check.policy).create()
    this.changes += 1
    if (table.states.get(key)) {
      table.states.set(key, state)
      return state
    }
    this.#sweep(now)
    if (this.#size >= this.#maxKeys) {
      const victim = this.#dispensable(now)
      if (!victim) return this.#overflowState(check, state)
      this.#drop(victim)
    }
    this.#size += 1
    // Sweeping may have dropped the table with its last key.
    this.#table(check).states.set(key, state)
    return state
  }

  delete(check: Check): boolean {
    const table = this.#known(check)
    const key = boundedKey(check.key)
    if (!table?.states.get(key)) return false
    this.#drop({ table, key })
    return true
  }

  /** Returns the state itself, so that an incarnation costs no bytes. */
  incarnationOf(state: KeyState): KeyState {
    return state
  }

  /** Checks two keys for each new one, so expired keys are dropped without a timer or a pause. */
  #sweep(now: number): void {
    for (let i = 0; i < sweptPerAdd; i += 1) {
      const one = this.#next()
      if (one && hasExpired(one, now)) this.#drop(one)
    }
  }

  /** Returns an expired key of a sample, or the least used one; none if all are exhausted. */
  #dispensable(now: number): Sampled | undefined {
    let least: Sampled | undefined
    let leastShare = 1
    for (let i = 0; i < sampleSize; i += 1) {
      const one = this.#next()
      if (!one) break
      if (hasExpired(one, now)) return one
      const share = shareOf(one, now)
      if (share < leastShare) {
        least = one
        leastShare = share
      }
    }
    return least
  }

  /** Returns a key of one table after another; `undefined` if there is none. */
  #next(): Sampled | undefined {
    if (this.#size === 0) return undefined
    this.#turn = (this.#turn + 1) % this.#round.length
    const table = this.#round[this.#turn]
    const found = table?.states.next()
    return table && found && { table, key: found[0], state: found[1] }
  }

  #drop({ table, key }: Pick<Sampled, 'table' | 'key'>): void {
    table.states.delete(key)
    this.#size -= 1
    this.changes += 1
    if (table.states.size === 0) this.#dropTable(table)
  }

  #dropTable(table: Table): void {
    this.#tables.delete(table.policy.id)
    this.#latest = undefined
    this.#round.splice(this.#round.indexOf(table), 1)
  }

  #known({ policy }: Check): Table | undefined {
    if (this.#latest?.policy !== policy) this.#latest = this.#tables.get(policy.id)
    return this.#latest
  }

  #table(check: Check): Table {
    const known = this.#known(check)
    if (known) return known
    const { policy } = check
    const table = { policy, states: new ShardedMap<KeyState>() }
    this.#tables.set(policy.id, table)
    this.#round.push(table)
    return table
  }

  #overflowState(check: Check, created: KeyState): KeyState {
    if (!sharesBuckets(check)) return created
    const key = overflowKey(check)
    const state = this.#overflow.get(key) ?? created
    this.#overflow.set(key, state)
    return state
  }
}

function hasExpired({ table: { policy }, state }: Sampled, now: number): boolean {
  return algorithmOf(policy).endsAt(state, { policy, cost: 0, limit: state.limit }) <= now
}

function shareOf({ table: { policy }, state }: Sampled, now: number): number {
  const check = { policy, cost: 0, limit: state.limit }
  const algorithm = algorithmOf(policy)
  return algorithm.used(state, check, now) / algorithm.capacity(check)
}

/** Not for strikes: those of one key must not block another. They are dropped without room. */
function sharesBuckets({ policy }: Check): boolean {
  return algorithmOf(policy).counts !== 'strikes'
}

/** Returns one of the 64 overflow buckets of a policy, by the FNV-1a hash of the key. */
function overflowKey({ policy, key }: Check): string {
  return `${policy.id} ${fnv1a(boundedKey(key)) % overflowBuckets}`
}

/** Long keys are kept as digests, padded to 257 characters: they never equal a short key. */
function boundedKey(key: string): string {
  if (key.length < longKeyLength) return key
  return digestIdentity(key).padStart(longKeyLength, '#')
}
