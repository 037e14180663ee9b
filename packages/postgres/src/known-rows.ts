import type { CountedKey } from '@sluice/core'
import { digestIdentity, stateKey } from '@sluice/core/backend'

/** A row as this process knows it. */
export interface Row {
  /** The state key. */
  readonly key: string
  /** The table key. */
  readonly digest: string
  /** 0 if there is no row. */
  version: number
  /** The encoded state; `undefined` if none. */
  text: string | undefined
  /** True while a request of this process waits for a lock on it. */
  isLocked: boolean
}

/** Size of each of two generations: a used row moves from the old one to the young one. */
const charactersOfGeneration = 4_000_000
/** Overhead of a row besides its text: a key, a digest, and their map entries. */
const charactersOfRow = 200

/** The rows that this process has read or written most recently. */
export class KnownRows {
  readonly #secret: string | undefined
  #young = new Map<string, Row>()
  #old = new Map<string, Row>()
  #characters = 0

  constructor(secret: string | undefined) {
    this.#secret = secret
  }

  /** Returns the row of a check. An unknown row counts as absent. */
  rowOf(check: CountedKey): Row {
    const key = stateKey(check)
    const young = this.#young.get(key)
    if (young) return young
    const row = this.#old.get(key) ?? this.#absent(key)
    this.#characters += charactersOfRow + key.length + (row.text?.length ?? 0)
    if (this.#characters > charactersOfGeneration) {
      this.#old = this.#young
      this.#young = new Map()
      this.#characters = 0
    }
    this.#young.set(key, row)
    return row
  }

  #absent(key: string): Row {
    const digest = digestIdentity(key, this.#secret)
    return { key, digest, version: 0, text: undefined, isLocked: false }
  }
}
