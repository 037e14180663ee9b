import type { Algorithm } from '../algorithms/algorithm.ts'
import { algorithms } from '../algorithms/table.ts'
import type { Check } from '../check.ts'
import { boundedKey } from './bounded-key.ts'

/** What one key of one policy has taken. Its identity is the incarnation of the key: a reset key gets a new cell. */
export interface Cell {
  readonly algorithm: Algorithm<unknown>
  state: unknown
  /** The last check that was charged: the policy and limit by which the cell expires or is exhausted. */
  check: Check
  /** Where it stands in the list that sweeping and sampling go through; or one of the two values below. */
  slot: number
}

/** The slot of an overflow bucket. */
const shared = -1
/** The slot of a cell that was dropped: what is taken from it would be lost. */
const dropped = -2

const sampleSize = 16
const sweptPerAdd = 2
const overflowBuckets = 64

/** The cells of a memory store: found by policy and key, bounded in number. */
export class Cells {
  readonly #maxKeys: number
  readonly #tables = new Map<string, Map<string, Cell>>()
  readonly #overflow = new Map<string, Cell>()
  readonly #all: Cell[] = []
  #sweepAt = 0

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  get size(): number {
    return this.#all.length
  }

  /** The cell that counts for a check: its own, or, when nothing can make room for one, its overflow bucket. */
  get(check: Check, now: number): Cell | undefined {
    const own = this.#tables.get(check.policy.id)?.get(boundedKey(check.key))
    if (own || this.#all.length < this.#maxKeys || this.#dispensable(now)) return own
    return this.#overflow.get(overflowKey(check))
  }

  /** The cell to charge: the one that was found, or a new one where it was dropped since, or all that it held has expired. */
  toCharge(check: Check, now: number, found: Cell | undefined): Cell {
    if (!found || found.slot === dropped) return this.#add(check, now)
    if (found.slot === shared || !hasExpired(found, now)) return found
    this.#drop(found)
    return this.#add(check, now)
  }

  #add(check: Check, now: number): Cell {
    this.#sweep(now)
    if (this.#all.length >= this.#maxKeys) {
      const victim = this.#dispensable(now)
      if (!victim) return this.#overflowCell(check)
      this.#drop(victim)
    }
    const cell = newCell(check, this.#all.length)
    this.#all.push(cell)
    this.#table(check).set(boundedKey(check.key), cell)
    return cell
  }

  delete(check: Check): void {
    const cell = this.#tables.get(check.policy.id)?.get(boundedKey(check.key))
    if (cell) this.#drop(cell)
  }

  /** Looks at two cells for every new one, so that what has expired goes without a timer and without a pause. */
  #sweep(now: number): void {
    for (let i = 0; i < sweptPerAdd && this.#all.length > 0; i += 1) {
      this.#sweepAt = (this.#sweepAt + 1) % this.#all.length
      const cell = this.#all[this.#sweepAt]
      if (cell && hasExpired(cell, now)) this.#drop(cell)
    }
  }

  /** An expired cell of a random sample, else its least used one; none when all of the sample are exhausted. */
  #dispensable(now: number): Cell | undefined {
    let least: Cell | undefined
    let leastShare = 1
    for (let i = 0; i < sampleSize; i += 1) {
      const cell = this.#all[Math.floor(Math.random() * this.#all.length)]
      if (!cell) continue
      if (hasExpired(cell, now)) return cell
      const share = cell.algorithm.used(cell.state, cell.check, now) / cell.check.limit
      if (share < leastShare) {
        least = cell
        leastShare = share
      }
    }
    return least
  }

  #drop(cell: Cell): void {
    const last = this.#all.pop()
    if (last && last !== cell) {
      this.#all[cell.slot] = last
      last.slot = cell.slot
    }
    cell.slot = dropped
    const { policy, key } = cell.check
    const table = this.#tables.get(policy.id)
    table?.delete(boundedKey(key))
    if (table?.size === 0) this.#tables.delete(policy.id)
  }

  #table({ policy }: Check): Map<string, Cell> {
    const table = this.#tables.get(policy.id) ?? new Map<string, Cell>()
    this.#tables.set(policy.id, table)
    return table
  }

  #overflowCell(check: Check): Cell {
    const key = overflowKey(check)
    const cell = this.#overflow.get(key) ?? newCell(check, shared)
    this.#overflow.set(key, cell)
    return cell
  }
}

function newCell(check: Check, slot: number): Cell {
  const algorithm = algorithms[check.policy.algorithm]
  return { algorithm, state: algorithm.create(), check, slot }
}

function hasExpired({ algorithm, state, check }: Cell, now: number): boolean {
  return algorithm.endsAt(state, check) <= now
}

/** One of 64 shared buckets a policy, by the FNV-1a hash of the key. */
function overflowKey({ policy, key }: Check): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return `${policy.id} ${(hash >>> 0) % overflowBuckets}`
}
