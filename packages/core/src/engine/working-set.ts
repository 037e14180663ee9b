import type { KeyState } from '../algorithms/algorithm.ts'
import { algorithmOf } from '../algorithms/table.ts'
import type { Check } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import { warnOnce } from '../options/warn.ts'
import type { States } from './engine.ts'

/**
 * Format of stored states. If you raise it, also rename something in the keys: during a rolling
 * deploy, processes read both.
 */
const version = 1

interface Entry {
  readonly check: Check
  readonly stored: string | undefined
  state: KeyState | undefined
}

/** A state to be written. */
export interface ChangedState {
  /** The key, as `stateKey` returns it. */
  readonly key: string
  /** The string to store; `undefined` to delete the key. */
  readonly text: string | undefined
  /** Time from which the state equals an empty one, in ms since the epoch. */
  readonly endsAt: number
}

/**
 * The states that an asynchronous backend has loaded for one batch. The backend locks the keys in
 * sorted order, loads them, and calls the engine. Then it writes the entries of `changed` and
 * commits.
 */
export class WorkingSet implements States {
  changes = 0
  readonly #stored: ReadonlyMap<string, string>
  readonly #entries = new Map<string, Entry>()
  readonly #incarnations = new WeakMap<KeyState, number>()

  /** @param stored strings of the existing keys, by `stateKey` */
  constructor(stored: ReadonlyMap<string, string>) {
    this.#stored = stored
  }

  get(check: Check): KeyState | undefined {
    return this.#entry(check).state
  }

  begin(check: Check): KeyState {
    const state = algorithmOf(check.policy).create()
    this.#incarnations.set(state, Math.floor(Math.random() * Number.MAX_SAFE_INTEGER))
    this.#entry(check).state = state
    this.changes += 1
    return state
  }

  delete(check: Check): boolean {
    const entry = this.#entry(check)
    const isFound = entry.state !== undefined
    entry.state = undefined
    return isFound
  }

  incarnationOf(state: KeyState): number | undefined {
    return this.#incarnations.get(state)
  }

  /** The states that differ from the stored ones. */
  changed(now: number): readonly ChangedState[] {
    const changed: ChangedState[] = []
    for (const [key, { check, stored, state }] of this.#entries) {
      const algorithm = algorithmOf(check.policy)
      const endsAt = state ? algorithm.endsAt(state, { ...check, limit: state.limit }) : 0
      const saved = state && endsAt > now ? algorithm.codec.save(state) : undefined
      const text = saved && [version, state && this.incarnationOf(state), ...saved].join(' ')
      if (text !== stored) changed.push({ key, text, endsAt })
    }
    return changed
  }

  #entry(check: Check): Entry {
    const key = stateKey(check)
    const known = this.#entries.get(key)
    if (known) return known
    const stored = this.#stored.get(key)
    const state = stored === undefined ? undefined : this.#read(check.policy, stored)
    const entry = { check, stored, state }
    this.#entries.set(key, entry)
    return entry
  }

  #read(policy: Policy, text: string): KeyState | undefined {
    const numbers = text.split(' ').map(Number)
    const [format, incarnation, ...saved] = numbers
    const isSound = format === version && numbers.every(Number.isSafeInteger)
    const state = isSound ? algorithmOf(policy).codec.load(saved) : undefined
    if (state && incarnation !== undefined) this.#incarnations.set(state, incarnation)
    else warnOnce(`a stored state of '${policy.name}' cannot be read, and counts as empty`)
    return state
  }
}

/**
 * Returns a string that identifies a state: the policy, the settings that it depends on, and the
 * key. It contains the client's identity.
 */
export function stateKey({ policy, key }: Pick<Check, 'policy' | 'key'>): string {
  const { keyName, keyShape } = algorithmOf(policy)
  return `${policy.id}~${keyName}-${keyShape(policy)}:${key}`
}
