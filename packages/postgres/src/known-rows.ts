import type { CountedKey } from '@sluice/core'
import { digestIdentity, stateKey } from '@sluice/core/backend'

/** A row as this process knows it. */
export interface Row {
  /** The key of its state. */
  readonly key: string
  /** The key in the table. */
  readonly digest: string
  /** 0: there is no row. */
  version: number
  /** The encoded state; `undefined` for none. */
  text: string | undefined
  /** True while a request of this process waits for a lock on it. */
  isLocked: boolean
}

/** In each of two generations: a row that is used moves from the old one to the young one. */
const charactersOfGeneration = 4_000_000
/** A row counts as its text and this: a key, a digest, and their places in memory. */
const charactersOfRow = 200

/** The rows that this process has read or written last. */
export class KnownRows {
  readonly #secret: string | undefined
  #young = new Map<string, Row>()
  #old = new Map<string, Row>()
  #characters = 0

  constructor(secret: string | undefined) {
    this.#secret = secret
  }

  /** Returns the row of a check. A new one counts as absent. */
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
