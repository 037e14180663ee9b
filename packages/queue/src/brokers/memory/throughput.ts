const bucketMs = 1_000
const spanMs = 30_000

/**
 * Measures jobs accepted and ended per second, over the time that the queue has been busy, at most
 * half a minute.
 */
export class Throughput {
  #busySince: number | undefined
  readonly #buckets = new Map<number, { in: number; out: number }>()

  /** @param depth number of jobs before this one */
  came(nowMs: number, depth: number): void {
    if (depth === 0) this.#busySince = nowMs
    this.#bucket(nowMs).in += 1
  }

  went(nowMs: number): void {
    this.#bucket(nowMs).out += 1
  }

  rates(nowMs: number): { inPerSecond: number; outPerSecond: number } {
    const since = Math.max(nowMs - spanMs, this.#busySince ?? nowMs)
    const totals = { in: 0, out: 0 }
    for (const [number, bucket] of this.#buckets) {
      if (number < Math.floor(since / bucketMs)) continue
      totals.in += bucket.in
      totals.out += bucket.out
    }
    const seconds = Math.max(1, (nowMs - since) / 1_000)
    return { inPerSecond: totals.in / seconds, outPerSecond: totals.out / seconds }
  }

  #bucket(nowMs: number): { in: number; out: number } {
    const number = Math.floor(nowMs / bucketMs)
    const known = this.#buckets.get(number)
    if (known) return known
    const oldest = number - spanMs / bucketMs
    for (const other of this.#buckets.keys()) if (other < oldest) this.#buckets.delete(other)
    const bucket = { in: 0, out: 0 }
    this.#buckets.set(number, bucket)
    return bucket
  }
}
