/** A key that was seen often, with how far its count may be off. */
export interface HotKey {
  readonly key: string
  /** Never below the true count. */
  readonly count: number
  /** Upper bound of the count's error: the true count is at least `count - error`. */
  readonly error: number
}

/** The counts of a sketch. A key that it does not list was seen `floor` times at most. */
export interface HotKeys {
  /** The listed keys, by count, the highest first. */
  readonly keys: readonly HotKey[]
  readonly floor: number
  /** The exact sum of all counts. */
  readonly total: number
}

/**
 * The Space-Saving sketch (Metwally, Agrawal, El Abbadi 2005): counts the most frequent keys of a
 * stream in `size` counters. A count is never below the true one, and above it by total / size at
 * most. So every key with more than total / size is listed.
 */
export class SpaceSaving {
  readonly #size: number
  /** The counter of each key. A counter keeps its number, so that the heap moves numbers alone. */
  readonly #counters = new Map<string, number>()
  readonly #keys: string[] = []
  readonly #counts: number[] = []
  readonly #errors: number[] = []
  /** The counters as a heap: the one with the lowest count is the first. */
  readonly #heap: number[] = []
  /** The place of each counter in the heap. */
  readonly #places: number[] = []
  #total = 0

  constructor(size: number) {
    this.#size = size
  }

  /** All counts together, exactly. */
  get total(): number {
    return this.#total
  }

  /**
   * @param by a number above 0
   * @param error upper bound of the error of `by`, for a key that another sketch counted
   */
  add(key: string, by = 1, error = 0): void {
    this.#total += by
    const counter = this.#counters.get(key)
    if (counter !== undefined) {
      this.#counts[counter] = this.#count(counter) + by
      this.#sink(counter)
      return
    }
    const used = this.#keys.length
    if (used < this.#size) {
      this.#begin(used, key, by, error)
      this.#rise(used)
      return
    }
    const lowest = this.#heap[0] ?? 0
    const floor = this.#count(lowest)
    this.#counters.delete(this.#keys[lowest] ?? '')
    this.#begin(lowest, key, floor + by, floor)
    this.#sink(lowest)
  }

  /** The keys with the highest counts. */
  top(most: number): HotKeys {
    const all = this.#keys.map((key, counter) => ({
      key,
      count: this.#count(counter),
      error: this.#errors[counter] ?? 0,
    }))
    all.sort((one, other) => other.count - one.count)
    const lowest = this.#keys.length < this.#size ? 0 : this.#count(this.#heap[0] ?? 0)
    const floor = all[most]?.count ?? lowest
    return { keys: all.slice(0, most), floor, total: this.#total }
  }

  /** Returns the least that the key was surely counted: 0 for a key that is not listed. */
  sureCount(key: string): number {
    const counter = this.#counters.get(key)
    return counter === undefined ? 0 : this.#sureCount(counter)
  }

  /** The key that was counted most for sure; `undefined` where there is none. Nothing is sorted. */
  surest(): string | undefined {
    let best = 0
    for (let counter = 1; counter < this.#keys.length; counter += 1) {
      if (this.#sureCount(counter) > this.#sureCount(best)) best = counter
    }
    return this.#keys[best]
  }

  clear(): void {
    this.#counters.clear()
    this.#keys.length = 0
    this.#total = 0
  }

  #count(counter: number): number {
    return this.#counts[counter] ?? 0
  }

  #sureCount(counter: number): number {
    return this.#count(counter) - (this.#errors[counter] ?? 0)
  }

  #begin(counter: number, key: string, count: number, error: number): void {
    this.#keys[counter] = key
    this.#counts[counter] = count
    this.#errors[counter] = error
    this.#counters.set(key, counter)
  }

  /** Puts a counter that has grown in its place. */
  #sink(counter: number): void {
    const heap = this.#heap
    const used = this.#keys.length
    const count = this.#count(counter)
    let place = this.#places[counter] ?? 0
    for (let left = 2 * place + 1; left < used; left = 2 * place + 1) {
      const one = heap[left] ?? 0
      const other = heap[left + 1] ?? 0
      const isRight = left + 1 < used && this.#count(other) < this.#count(one)
      const lower = isRight ? other : one
      if (count <= this.#count(lower)) break
      this.#put(lower, place)
      place = isRight ? left + 1 : left
    }
    this.#put(counter, place)
  }

  /** Puts a new counter in its place, from the end of the heap. */
  #rise(counter: number): void {
    const count = this.#count(counter)
    let place = this.#keys.length - 1
    while (place > 0) {
      const parent = (place - 1) >> 1
      const above = this.#heap[parent] ?? 0
      if (this.#count(above) <= count) break
      this.#put(above, place)
      place = parent
    }
    this.#put(counter, place)
  }

  #put(counter: number, place: number): void {
    this.#heap[place] = counter
    this.#places[counter] = place
  }
}

/**
 * Joins the counts of several sketches. A count stays at or above the true one, and its error
 * bounds the difference.
 */
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
