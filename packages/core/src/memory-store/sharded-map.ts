import { fnv1a } from '../runtime/hash.ts'

const shards = 64
/**
 * Number of characters at the end that choose the shard: addresses, numbers and digests differ
 * there.
 */
const significant = 8

/**
 * A map of 64 small maps. A map grows by being copied: a million keys block the process for a tenth
 * of a second, a sixty-fourth of them for a millisecond or two.
 */
export class ShardedMap<Value> {
  readonly #shards: (Map<string, Value> | undefined)[] = Array.from({ length: shards })
  #size = 0
  /** The position of `nextKey`. Entries that are deleted or added meanwhile do not disturb it. */
  #hand: MapIterator<string> | undefined
  #handShard = 0
  /** The key whose shard was asked for last, which is often the next one too. */
  #latestKey = ''
  #latestShard = shardOf('')

  get size(): number {
    return this.#size
  }

  get(key: string): Value | undefined {
    return this.#shards[this.#shardOf(key)]?.get(key)
  }

  set(key: string, value: Value): void {
    const index = this.#shardOf(key)
    let shard = this.#shards[index]
    if (!shard) {
      shard = new Map()
      this.#shards[index] = shard
    }
    this.#size -= shard.size
    shard.set(key, value)
    this.#size += shard.size
  }

  delete(key: string): void {
    if (this.#shards[this.#shardOf(key)]?.delete(key)) this.#size -= 1
  }

  *keys(): Iterable<string> {
    for (const shard of this.#shards) if (shard) yield* shard.keys()
  }

  /**
   * Returns another key with each call, and starts again after the last; `undefined` when the map
   * is empty.
   */
  nextKey(): string | undefined {
    if (this.#size === 0) return undefined
    for (;;) {
      const next = this.#hand?.next()
      if (next && !next.done) {
        this.#latestKey = next.value
        this.#latestShard = this.#handShard
        return next.value
      }
      this.#handShard = (this.#handShard + 1) % shards
      this.#hand = this.#shards[this.#handShard]?.keys()
    }
  }

  #shardOf(key: string): number {
    if (key !== this.#latestKey) {
      this.#latestKey = key
      this.#latestShard = shardOf(key)
    }
    return this.#latestShard
  }
}

/** Returns the shard of a key, by the hash of the key's end. */
function shardOf(key: string): number {
  const hash = fnv1a(key, Math.max(0, key.length - significant))
  return (hash ^ (hash >>> 15)) & (shards - 1)
}
