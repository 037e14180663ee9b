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
  readonly #places = new Map<string, number>()
  /** A heap: the counter with the lowest count comes first. */
  readonly #keys: string[] = []
  readonly #counts: number[] = []
  readonly #errors: number[] = []
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
    const place = this.#places.get(key)
    if (place !== undefined) {
      this.#counts[place] = this.#count(place) + by
      this.#sink(place)
      return
    }
    const used = this.#keys.length
    if (used < this.#size) {
      this.#put(used, key, by, error)
      this.#rise(used)
      return
    }
    const lowest = this.#count(0)
    this.#places.delete(this.#keys[0] ?? '')
    this.#put(0, key, lowest + by, lowest)
    this.#sink(0)
  }

  /** The keys with the highest counts. */
  top(most: number): HotKeys {
    const all = this.#keys.map((key, place) => ({
      key,
      count: this.#count(place),
      error: this.#errors[place] ?? 0,
    }))
    all.sort((one, other) => other.count - one.count)
    const lowest = this.#keys.length < this.#size ? 0 : this.#count(0)
    const floor = all[most]?.count ?? lowest
    return { keys: all.slice(0, most), floor, total: this.#total }
  }

  /** Returns the least that the key was surely counted: 0 for a key that is not listed. */
  sureCount(key: string): number {
    const place = this.#places.get(key)
    return place === undefined ? 0 : this.#sureCount(place)
  }

  /** The key that was counted most for sure; `undefined` where there is none. Nothing is sorted. */
  surest(): string | undefined {
    let best = 0
    for (let place = 1; place < this.#keys.length; place += 1) {
      if (this.#sureCount(place) > this.#sureCount(best)) best = place
    }
    return this.#keys[best]
  }

  clear(): void {
    this.#places.clear()
    this.#keys.length = 0
    this.#total = 0
  }

  #count(place: number): number {
    return this.#counts[place] ?? 0
  }

  #sureCount(place: number): number {
    return this.#count(place) - (this.#errors[place] ?? 0)
  }

  #put(place: number, key: string, count: number, error: number): void {
    this.#keys[place] = key
    this.#counts[place] = count
    this.#errors[place] = error
    this.#places.set(key, place)
  }

  #sink(from: number): void {
    let place = from
    for (;;) {
      const left = 2 * place + 1
      if (left >= this.#keys.length) return
      const right = left + 1
      const isRight = right < this.#keys.length && this.#count(right) < this.#count(left)
      const lower = isRight ? right : left
      if (this.#count(place) <= this.#count(lower)) return
      this.#swap(place, lower)
      place = lower
    }
  }

  #rise(from: number): void {
    let place = from
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (this.#count(parent) <= this.#count(place)) return
      this.#swap(parent, place)
      place = parent
    }
  }

  #swap(one: number, other: number): void {
    const key = this.#keys[one] ?? ''
    const count = this.#count(one)
    const error = this.#errors[one] ?? 0
    this.#put(one, this.#keys[other] ?? '', this.#count(other), this.#errors[other] ?? 0)
    this.#put(other, key, count, error)
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
