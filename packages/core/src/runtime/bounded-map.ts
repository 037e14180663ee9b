/** Values by group and key, with a total count. */
class Groups<Value> {
  readonly byGroup = new Map<string, Map<string, Value>>()
  size = 0

  get(group: string, key: string): Value | undefined {
    return this.byGroup.get(group)?.get(key)
  }

  set(group: string, key: string, value: Value): void {
    const values = this.byGroup.get(group)
    if (!values?.has(key)) this.size += 1
    if (values) values.set(key, value)
    else this.byGroup.set(group, new Map([[key, value]]))
  }

  delete(group: string, key: string): void {
    const values = this.byGroup.get(group)
    if (!values?.delete(key)) return
    this.size -= 1
    if (values.size === 0) this.byGroup.delete(group)
  }
}

/**
 * Values by group and key, such as a policy id and one of its keys. It keeps the `bound` most
 * recently used values, and at most twice as many. Older ones are dropped together, so that no call
 * has to search for the oldest.
 */
export class BoundedMap<Value> {
  protected readonly bound: number
  readonly #mustStay: ((value: Value) => boolean) | undefined
  #young = new Groups<Value>()
  #old = new Groups<Value>()

  /** @param mustStay returns whether an old value is kept beyond the bound @default none */
  constructor(bound: number, mustStay?: (value: Value) => boolean) {
    this.bound = bound
    this.#mustStay = mustStay
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(group: string, key: string): Value | undefined {
    const young = this.#young.get(group, key)
    if (young !== undefined) return young
    const old = this.#old.get(group, key)
    if (old !== undefined) this.set(group, key, old)
    return old
  }

  set(group: string, key: string, value: Value): void {
    this.#old.delete(group, key)
    this.#young.set(group, key, value)
    if (this.#young.size > this.bound) this.#age()
  }

  delete(group: string, key: string): void {
    this.#young.delete(group, key)
    this.#old.delete(group, key)
  }

  clear(): void {
    this.#young = new Groups()
    this.#old = new Groups()
  }

  /** All values, roughly oldest first. */
  *values(): Iterable<Value> {
    for (const values of this.#old.byGroup.values()) yield* values.values()
    for (const values of this.#young.byGroup.values()) yield* values.values()
  }

  #age(): void {
    const dropped = this.#old.byGroup
    this.#old = this.#young
    this.#young = new Groups()
    if (!this.#mustStay) return
    for (const [group, values] of dropped) {
      for (const [key, value] of values) {
        if (this.#mustStay(value)) this.#old.set(group, key, value)
      }
    }
  }
}
