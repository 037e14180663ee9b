import type { Broker, Depth } from './broker.ts'

/**
 * Waits (ms) while no job has ended yet, so that the rate is unknown: for a refused client, and for
 * one that polls.
 */
const unknownRateMs = { refused: 5_000, polling: 2_000 } as const

const minMs = 1_000
const maxMs = 3_600_000

/**
 * Time (ms) for which a reading of the depth is reused, because many clients may be refused at
 * once.
 */
const freshMs = 500

/**
 * Returns the time (ms) in which all jobs of the queue end at the recent rate: depth ÷ rate, from a
 * second to an hour.
 */
function expectedWaitMs(
  { depth, outPerSecond }: Depth,
  asking: keyof typeof unknownRateMs,
): number {
  if (depth === 0) return minMs
  if (outPerSecond === 0) return unknownRateMs[asking]
  const estimateMs = Math.ceil((depth / outPerSecond) * 1_000)
  return Math.min(Math.max(estimateMs, minMs), maxMs)
}

/** Reads a broker's depth from time to time, and not for every client. */
export class WaitEstimate {
  readonly #broker: Broker
  #looked: Promise<Depth> | undefined
  #lookedAt = 0

  constructor(broker: Broker) {
    this.#broker = broker
  }

  /**
   * Estimates the wait in ms. Never rejects: an accepted job stays accepted, with or without an
   * estimate.
   */
  async waitMs(asking: keyof typeof unknownRateMs): Promise<number> {
    try {
      return expectedWaitMs(await this.#recent(), asking)
    } catch {
      // The caller of `depth` gets the error.
      return unknownRateMs[asking]
    }
  }

  /** Returns the depth, at most half a second old. */
  #recent(): Promise<Depth> {
    const nowMs = Date.now()
    const isFresh = nowMs >= this.#lookedAt && nowMs < this.#lookedAt + freshMs
    if (this.#looked && isFresh) return this.#looked
    const looked = this.#broker.depth()
    this.#looked = looked
    this.#lookedAt = nowMs
    looked.catch(() => {
      this.#looked = undefined
    })
    return looked
  }
}
