import { SluiceError } from '@sluice/core'

export interface BatcherOptions<Item, Result> {
  /** The most that the items of one batch weigh together; an item that is heavier travels alone. */
  readonly maxWeight: number
  weightOf(item: Item): number
  /** The most batches under way at once; what comes meanwhile waits for the next. */
  readonly maxInFlight: number
  /** Sends one batch; the results stand in the order of the items. A batch that fails fails its own items only. */
  send(items: readonly Item[]): Promise<readonly Result[]>
}

interface Waiting<Item, Result> {
  readonly item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

/** Lets the items of one tick, and those that come while batches are under way, travel together, in order. */
export class Batcher<Item, Result> {
  readonly #options: BatcherOptions<Item, Result>
  readonly #underWay = new Set<Promise<void>>()
  #queue: Waiting<Item, Result>[] = []
  #flushing = false
  #closed = false

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options
  }

  add(item: Item): Promise<Result> {
    if (this.#closed) {
      return Promise.reject(
        new SluiceError('SLUICE_STORE_CLOSED', 'the store was closed before this check'),
      )
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject })
      this.#schedule()
    })
  }

  /** Takes no more items, and settles those it has. */
  async close(): Promise<void> {
    this.#closed = true
    this.#flush()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  #schedule(): void {
    if (this.#flushing) return
    this.#flushing = true
    queueMicrotask(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  #flush(): void {
    const { maxInFlight } = this.#options
    while (this.#queue.length > 0 && this.#underWay.size < maxInFlight) {
      const batch = this.#queue.splice(0, this.#nextLength())
      const run = this.#run(batch).then(() => {
        this.#underWay.delete(run)
        this.#flush()
      })
      this.#underWay.add(run)
    }
  }

  /** How many items from the front of the queue make the next batch. */
  #nextLength(): number {
    const { maxWeight, weightOf } = this.#options
    let weight = 0
    const end = this.#queue.findIndex(({ item }) => {
      weight += weightOf(item)
      return weight > maxWeight
    })
    return end === -1 ? this.#queue.length : Math.max(1, end)
  }

  async #run(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#options.send(batch.map(({ item }) => item))
      for (const [index, waiting] of batch.entries()) {
        const result = results[index]
        if (result === undefined)
          waiting.reject(new SluiceError('SLUICE_STORE_REPLY', 'a check got no answer'))
        else waiting.resolve(result)
      }
    } catch (error) {
      for (const waiting of batch) waiting.reject(error)
    }
  }
}
