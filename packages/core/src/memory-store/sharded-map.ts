import { fnv1a } from '../runtime/hash.ts'

const maxUndivided = 16_384
const shards = 64
/** Number of last characters that select the shard: addresses, numbers and digests differ there. */
const significant = 8

/**
 * A map that is divided into 64 small maps when it has many keys. A map grows by being copied: a
 * million keys block the process for a tenth of a second, a sixty-fourth of them for a millisecond
 * or two. With fewer keys, one map saves a tenth of a decision.
 */
export class ShardedMap<Value> {
  readonly #whole = new Map<string, Value>()
  #shards: readonly Map<string, Value>[] = [this.#whole]
  #size = 0
  /** The position of `next`. Entries deleted or added meanwhile do not disturb it. */
  #hand = this.#whole.entries()
  #handShard = 0

  get size(): number {
    return this.#size
  }

  get(key: string): Value | undefined {
    return this.#shardOf(key).get(key)
  }

  set(key: string, value: Value): void {
    if (this.#size === maxUndivided && this.#shards.length === 1) this.#divide()
    const shard = this.#shardOf(key)
    this.#size -= shard.size
    shard.set(key, value)
    this.#size += shard.size
  }

  delete(key: string): void {
    if (this.#shardOf(key).delete(key)) this.#size -= 1
  }

  *keys(): Iterable<string> {
    for (const shard of this.#shards) yield* shard.keys()
  }

  /** Returns another entry with each call, starting again after the last; `undefined` if empty. */
  next(): readonly [key: string, value: Value] | undefined {
    if (this.#size === 0) return undefined
    for (;;) {
      const next = this.#hand.next()
      if (!next.done) return next.value
      this.#handShard = (this.#handShard + 1) % this.#shards.length
      this.#hand = (this.#shards[this.#handShard] ?? this.#whole).entries()
    }
  }

  #divide(): void {
    this.#shards = Array.from({ length: shards }, () => new Map())
    for (const [key, value] of this.#whole) this.#shardOf(key).set(key, value)
    this.#whole.clear()
  }

  #shardOf(key: string): Map<string, Value> {
    if (this.#shards.length === 1) return this.#whole
    const hash = fnv1a(key, Math.max(0, key.length - significant))
    return this.#shards[(hash ^ (hash >>> 15)) & (shards - 1)] ?? this.#whole
  }
}
