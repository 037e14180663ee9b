import { SluiceError } from '@sluice/core'

export interface BatcherOptions<Item, Result> {
  /** The most that the items of one batch weigh together, by each measure; an item that is heavier travels alone. */
  readonly maxWeights: readonly number[]
  /** What an item weighs, by each measure. */
  weigh(item: Item, measure: number): number
  /** The most batches under way at once; what comes meanwhile waits. */
  readonly maxInFlight: number
  /** Whether anybody still waits for an item: one that nobody does is dropped, and not sent. */
  isWanted(item: Item): boolean
  /** Sends one batch; the results, or errors, stand in the order of the items. A batch that fails fails its own items only. */
  send(items: readonly Item[]): Promise<readonly (Result | SluiceError)[]>
}

/** How long a batch counts as under way: one without an answer must not hold up the others for ever. Its answer still counts when it comes. */
const patienceMs = 1_000

interface Waiting<Item, Result> {
  readonly item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

interface Batch<Item, Result> {
  readonly items: readonly Waiting<Item, Result>[]
  readonly sentAt: number
}

/**
 * Lets items travel together, first come, first served. With nothing under way they leave at the end of the current tick's work, so that
 * batching never adds latency; else they are collected, and leave with the next answer, or when they make half a full batch: then both sides
 * have something to do, instead of waiting for each other in turns.
 */
export class Batcher<Item, Result> {
  readonly #options: BatcherOptions<Item, Result>
  readonly #underWay = new Map<Promise<void>, Batch<Item, Result>>()
  /** Of the items that wait, by each measure. */
  readonly #weights: number[]
  #queue: Waiting<Item, Result>[] = []
  #scheduled = false
  #closed = false

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options
    this.#weights = options.maxWeights.map(() => 0)
  }

  get isClosed(): boolean {
    return this.#closed
  }

  add(item: Item): Promise<Result> {
    if (this.#closed) return Promise.reject(storeClosed())
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject })
      this.#weigh(item, 1)
      if (!this.#scheduled && this.#maySend()) this.#schedule()
    })
  }

  /** Takes no more items, and settles those it has: those that are not answered in time reject. */
  async close(): Promise<void> {
    this.#closed = true
    this.#flush()
    await inPatience(this.#settled())
    const closed = new SluiceError('SLUICE_STORE_CLOSED', 'the store was closed before it answered')
    for (const { reject } of this.#queue) reject(closed)
    this.#queue = []
  }

  async #settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay.keys())
  }

  #maySend(): boolean {
    if (this.#queue.length === 0) return false
    const inFlight = this.#inFlight()
    if (inFlight >= this.#options.maxInFlight) return false
    return inFlight === 0 || this.#closed || this.#fills(0.5)
  }

  /** The batches that somebody waits for, and that may still be answered. */
  #inFlight(): number {
    const { isWanted } = this.#options
    const oldest = performance.now() - patienceMs
    let count = 0
    for (const { sentAt, items } of this.#underWay.values()) {
      if (sentAt > oldest && items.some(({ item }) => isWanted(item))) count += 1
    }
    return count
  }

  /** Whether what waits makes at least such a share of a batch. */
  #fills(share: number): boolean {
    const { maxWeights } = this.#options
    return this.#weights.some((weight, measure) => weight >= share * (maxWeights[measure] ?? 0))
  }

  #schedule(): void {
    this.#scheduled = true
    queueMicrotask(() => {
      this.#scheduled = false
      this.#flush()
    })
  }

  #flush(): void {
    this.#drop()
    while (this.#maySend()) {
      const batch = this.#takeBatch()
      const run = this.#run(batch).then(() => {
        this.#underWay.delete(run)
        this.#flush()
      })
      this.#underWay.set(run, { items: batch, sentAt: performance.now() })
    }
  }

  /** Lets go of what nobody waits for any more: as far as it stands in front, since who came first gives up first. */
  #drop(): void {
    const { isWanted } = this.#options
    let count = 0
    for (const { item } of this.#queue) {
      if (isWanted(item)) break
      count += 1
    }
    if (count === 0) return
    const dropped = new SluiceError('SLUICE_STORE_DEADLINE', 'a check was not sent in time')
    for (const { item, reject } of this.#queue.splice(0, count)) {
      this.#weigh(item, -1)
      reject(dropped)
    }
  }

  #takeBatch(): readonly Waiting<Item, Result>[] {
    const length = this.#fills(1) ? this.#fittingLength() : this.#queue.length
    const batch = length === this.#queue.length ? this.#queue : this.#queue.slice(0, length)
    this.#queue = length === this.#queue.length ? [] : this.#queue.slice(length)
    for (const { item } of batch) this.#weigh(item, -1)
    return batch
  }

  /** How many items from the front of the queue make a full batch. */
  #fittingLength(): number {
    const { maxWeights, weigh } = this.#options
    const weights = maxWeights.map(() => 0)
    const end = this.#queue.findIndex(({ item }) =>
      maxWeights.some((max, measure) => {
        weights[measure] = (weights[measure] ?? 0) + weigh(item, measure)
        return (weights[measure] ?? 0) > max
      }),
    )
    return end === -1 ? this.#queue.length : Math.max(1, end)
  }

  #weigh(item: Item, sign: 1 | -1): void {
    for (let measure = 0; measure < this.#weights.length; measure += 1) {
      const weight = sign * this.#options.weigh(item, measure)
      this.#weights[measure] = (this.#weights[measure] ?? 0) + weight
    }
  }

  async #run(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#options.send(batch.map(({ item }) => item))
      for (let index = 0; index < batch.length; index += 1) {
        const result = results[index]
        if (result === undefined)
          batch[index]?.reject(new SluiceError('SLUICE_STORE_REPLY', 'a check got no answer'))
        else if (result instanceof SluiceError) batch[index]?.reject(result)
        else batch[index]?.resolve(result)
      }
    } catch (error) {
      for (const waiting of batch) waiting.reject(error)
    }
  }
}

export function storeClosed(): SluiceError {
  return new SluiceError('SLUICE_STORE_CLOSED', 'the store was closed before this check')
}

/** Waits for something, but no longer than for a batch that is lost. */
export async function inPatience(work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, patienceMs)
  })
  await Promise.race([work, timeout])
  clearTimeout(timer)
}
