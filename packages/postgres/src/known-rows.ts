import type { Check } from '@sluice/core'
import { digestIdentity, stateKey } from '@sluice/core/backend'

/** A row as this process knows it. */
export interface Row {
  /** The key in the table. */
  readonly digest: string
  /** 0: there is no row. */
  version: number
  /** The encoded state; `undefined` for none. */
  text: string | undefined
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

  /** Returns the rows of some checks by their state keys. New ones count as absent. */
  rowsOf(checks: Iterable<Check>): Map<string, Row> {
    const rows = new Map<string, Row>()
    for (const check of checks) {
      const key = stateKey(check)
      if (!rows.has(key)) rows.set(key, this.#rowOf(key))
    }
    return rows
  }

  #rowOf(key: string): Row {
    const young = this.#young.get(key)
    if (young) return young
    const row = this.#old.get(key) ?? {
      digest: digestIdentity(key, this.#secret),
      version: 0,
      text: undefined,
    }
    this.#characters += charactersOfRow + key.length + (row.text?.length ?? 0)
    if (this.#characters > charactersOfGeneration) {
      this.#old = this.#young
      this.#young = new Map()
      this.#characters = 0
    }
    this.#young.set(key, row)
    return row
  }
}
