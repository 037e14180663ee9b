/** A frequent key, with the error bound of its count. */
export interface HotKey {
  readonly key: string
  /** Never below the true count. */
  readonly count: number
  /** Upper bound of the count's error: the true count is at least `count - error`. */
  readonly error: number
}

/** The counts of a sketch. A key that is not listed was seen at most `floor` times. */
export interface HotKeys {
  /** The listed keys, highest count first. */
  readonly keys: readonly HotKey[]
  readonly floor: number
  /** The exact sum of all counts. */
  readonly total: number
}

/**
 * The Space-Saving sketch (Metwally, Agrawal, El Abbadi 2005) with evictions in batches, as in
 * Anderson et al. 2017: counts the most frequent keys of a stream in 1.5 × `size` counters. A count
 * is never below the true one, and at most total / size above it. So every key with more than total
 * / size is listed.
 *
 * A known key costs one look-up and one addition. When the counters are used up, all keys are
 * evicted whose count is not above that of the key of rank `size + 1`. That is at least a third of
 * the keys, so many new keys share the cost of an eviction.
 */
export class SpaceSaving {
  readonly #size: number
  readonly #room: number
  /** The index of each key's counter. */
  #counters = new Map<string, number>()
  readonly #counts: number[] = []
  readonly #errors: number[] = []
  /** Maximum count of a key without a counter. */
  #floor = 0
  #total = 0

  constructor(size: number) {
    this.#size = size
    this.#room = size + Math.ceil(size / 2)
  }

  get total(): number {
    return this.#total
  }

  /** @param by a number above 0 */
  add(key: string, by = 1): void {
    this.#total += by
    const counter = this.#counters.get(key)
    if (counter !== undefined) {
      this.#counts[counter] = (this.#counts[counter] ?? 0) + by
      return
    }
    if (this.#counters.size === this.#room) this.#evict()
    this.#place(key, this.#floor + by, this.#floor)
  }

  /** The keys with the highest counts. */
  top(most: number): HotKeys {
    const all = this.#listed().sort((one, other) => other.count - one.count)
    const floor = Math.max(this.#floor, all[most]?.count ?? 0)
    return { keys: all.slice(0, most), floor, total: this.#total }
  }

  /** Returns a lower bound of the key's count: 0 for a key that is not listed. */
  sureCount(key: string): number {
    const counter = this.#counters.get(key)
    if (counter === undefined) return 0
    return (this.#counts[counter] ?? 0) - (this.#errors[counter] ?? 0)
  }

  /** Returns the key with the highest certain count, without sorting; `undefined` if none. */
  surest(): string | undefined {
    const sureCount = ({ count, error }: HotKey) => count - error
    const all = this.#listed()
    const best = Math.max(...all.map(sureCount))
    return all.find((each) => sureCount(each) === best)?.key
  }

  /** Returns a copy of the sketch. */
  copy(): SpaceSaving {
    const copy = new SpaceSaving(this.#size)
    copy.#floor = this.#floor
    copy.#total = this.#total
    for (const { key, count, error } of this.#listed()) copy.#place(key, count, error)
    return copy
  }

  clear(): void {
    this.#counters.clear()
    this.#floor = 0
    this.#total = 0
  }

  #listed(): HotKey[] {
    return Array.from(this.#counters, ([key, counter]) => ({
      key,
      count: this.#counts[counter] ?? 0,
      error: this.#errors[counter] ?? 0,
    }))
  }

  #place(key: string, count: number, error: number): void {
    const counter = this.#counters.size
    this.#counters.set(key, counter)
    this.#counts[counter] = count
    this.#errors[counter] = error
  }

  #evict(): void {
    const floor = this.#countToLeave()
    const before = this.#counters
    this.#counters = new Map()
    for (const [key, counter] of before) {
      const count = this.#counts[counter] ?? 0
      if (count > floor) this.#place(key, count, this.#errors[counter] ?? 0)
    }
    this.#floor = floor
  }

  /** Returns the count up to which keys are evicted, so that at most `size` are left. */
  #countToLeave(): number {
    const toLeave = this.#room - this.#size
    let lowest = Number.POSITIVE_INFINITY
    let lowestKeys = 0
    for (let counter = 0; counter < this.#room; counter += 1) {
      const count = this.#counts[counter] ?? 0
      if (count > lowest) continue
      lowestKeys = count === lowest ? lowestKeys + 1 : 1
      lowest = count
    }
    // Usually the keys counted once since the last eviction are enough. Then nothing is sorted.
    return lowestKeys >= toLeave
      ? lowest
      : (Float64Array.from(this.#counts).sort()[toLeave - 1] ?? 0)
  }
}

/** Merges several sketches. Each count stays at or above the true one, within its error. */
export function mergeHotKeys(parts: readonly HotKeys[], most: number): HotKeys {
  const floor = parts.reduce((sum, part) => sum + part.floor, 0)
  const total = parts.reduce((sum, part) => sum + part.total, 0)
  const merged = new Map<string, HotKey>()
  for (const part of parts) {
    for (const { key, count, error } of part.keys) {
      // A part that does not list the key may have seen it `floor` times.
      const known = merged.get(key) ?? { count: floor, error: floor }
      merged.set(key, {
        key,
        count: known.count - part.floor + count,
        error: known.error - part.floor + error,
      })
    }
  }
  const keys = [...merged.values()].sort((one, other) => other.count - one.count)
  return { keys: keys.slice(0, most), floor: Math.max(floor, keys[most]?.count ?? 0), total }
}
