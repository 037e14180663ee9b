import type { Check } from '../model/check.ts'

/**
 * Values by policy and key. It keeps between `size` and twice `size` of them, and drops the oldest
 * first.
 */
export class CheckMap<Value> {
  readonly #size: number
  #count = 0
  #young = new Map<string, Map<string, Value>>()
  #old = new Map<string, Map<string, Value>>()

  constructor(size: number) {
    this.#size = size
  }

  /** True when no value is kept. */
  get isEmpty(): boolean {
    return this.#young.size === 0 && this.#old.size === 0
  }

  get({ policy, key }: Check): Value | undefined {
    return this.#young.get(policy.id)?.get(key) ?? this.#old.get(policy.id)?.get(key)
  }

  set({ policy, key }: Check, value: Value): void {
    const values = this.#young.get(policy.id)
    if (values?.has(key)) {
      values.set(key, value)
      return
    }
    if (this.#count >= this.#size) {
      this.#old = this.#young
      this.#young = new Map()
      this.#count = 0
    }
    this.#count += 1
    const young = this.#young.get(policy.id)
    if (young) young.set(key, value)
    else this.#young.set(policy.id, new Map([[key, value]]))
  }

  delete({ policy, key }: Check): void {
    this.#young.get(policy.id)?.delete(key)
    this.#old.get(policy.id)?.delete(key)
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
    this.#count = 0
  }
}
