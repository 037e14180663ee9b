import type { Asker, Check, Policy, StoreOp } from '@sluice/core'

/** One request: an operation on its checks, and the key of each in Redis. */
export interface Row {
  readonly op: StoreOp
  readonly checks: readonly Check[]
  readonly keys: readonly string[]
  /** Who waits for it, as far as the limiter says. */
  readonly asker?: Asker | undefined
}

/** Equal requests, of which one is sent, with their number. */
export interface MergedRow {
  readonly row: Row
  /** Where the requests stand among all of the call, in order. */
  readonly positions: number[]
}

/** Requests of one operation on the same list of policies: their keys travel without further words. */
export interface Group {
  readonly op: StoreOp
  /** Numbers of the policies, from 1. */
  readonly shape: readonly number[]
  readonly merged: MergedRow[]
  readonly mayMerge: boolean
  /** Whether a key occurs in it more than once. */
  repeats: boolean
}

interface Place {
  readonly group: number
  readonly merged: MergedRow
}

/**
 * The rows of a call in as few words as possible: those of one shape together, equal ones as one. Rows that have a key in common keep their
 * order; the others were asked at the same time, so nobody can tell.
 */
export class RowGroups {
  readonly groups: Group[] = []
  /** A check of each policy and limit, by number. */
  readonly policies: Check[] = []
  readonly #numbers = new Map<Policy, Map<number, number>>()
  /** Where the last row with a key stands. */
  readonly #places = new Map<string, Place>()
  /** The groups of `consume` that can still take rows, by shape. */
  readonly #open = new Map<number | string, number>()

  constructor(rows: readonly Row[]) {
    for (let position = 0; position < rows.length; position += 1) {
      const row = rows[position]
      if (row) this.#add(row, position)
    }
  }

  #add(row: Row, position: number): void {
    const index = this.#groupFor(row)
    const group = this.groups[index]
    if (!group) return
    const equal = group.mayMerge ? this.#equalTo(row, index) : undefined
    if (equal) {
      equal.positions.push(position)
      return
    }
    const merged = { row, positions: [position] }
    group.merged.push(merged)
    const place = { group: index, merged }
    for (const key of row.keys) {
      if (this.#places.get(key)?.group === index) group.repeats = true
      this.#places.set(key, place)
    }
  }

  #groupFor(row: Row): number {
    const shape = this.#shapeOf(row)
    const [only] = shape
    const shapeId = shape.length === 1 && only !== undefined ? only : shape.join()
    if (row.op === 'consume') {
      const known = this.#open.get(shapeId)
      if (known !== undefined && !this.#isTouchedAfter(row, known)) return known
    } else {
      // Nothing that comes later may overtake it.
      this.#open.clear()
    }
    const group = { op: row.op, shape, merged: [], mayMerge: mayMerge(row), repeats: false }
    const index = this.groups.push(group) - 1
    if (row.op === 'consume') this.#open.set(shapeId, index)
    return index
  }

  /** Whether a group that is decided after the given one has a key of the row. */
  #isTouchedAfter({ keys }: Row, group: number): boolean {
    for (const key of keys) if ((this.#places.get(key)?.group ?? 0) > group) return true
    return false
  }

  /** The row that was the last to touch every key of this one, and asked for the same. */
  #equalTo(row: Row, group: number): MergedRow | undefined {
    const merged = this.#places.get(row.keys[0] ?? '')?.merged
    if (!merged || merged.row.keys.length !== row.keys.length) return undefined
    for (let i = 0; i < row.keys.length; i += 1) {
      const key = row.keys[i] ?? ''
      const place = this.#places.get(key)
      const isSame = place?.merged === merged && place.group === group
      if (!isSame || merged.row.keys[i] !== key) return undefined
      if (merged.row.checks[i]?.cost !== row.checks[i]?.cost) return undefined
    }
    return merged
  }

  #shapeOf({ checks }: Row): readonly number[] {
    const [only] = checks
    if (only && checks.length === 1) return [this.#numberOf(only)]
    return checks.map((check) => this.#numberOf(check))
  }

  #numberOf(check: Check): number {
    let limits = this.#numbers.get(check.policy)
    if (!limits) {
      limits = new Map()
      this.#numbers.set(check.policy, limits)
    }
    const known = limits.get(check.limit)
    if (known !== undefined) return known
    const number = this.policies.push(check)
    limits.set(check.limit, number)
    return number
  }
}

/** Equal requests can be decided at once where a denial changes nothing, and an allowed one is like the next. */
function mayMerge({ op, checks }: Row): boolean {
  return op === 'consume' && checks.every(({ policy }) => !isSingular(policy))
}

function isSingular({ algorithm, countDenied }: Policy): boolean {
  return countDenied || algorithm === 'leaky-bucket' || algorithm === 'concurrency'
}
