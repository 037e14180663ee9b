import type { Broker, Depth } from './broker.ts'

/** Waits (ms) while no job has ended yet, so that the rate is unknown: for a refused client, and for one that polls. */
const unknownRateMs = { refused: 5_000, polling: 2_000 } as const

const minMs = 1_000
const maxMs = 3_600_000

/** Time (ms) for which a reading of the depth is reused: every refused client asks for it, and many are refused at once. */
const freshMs = 500

/** Time (ms) in which all jobs of the queue end at the recent rate: depth ÷ rate, from a second to an hour. */
function expectedWaitMs(
  { depth, outPerSecond }: Depth,
  asking: keyof typeof unknownRateMs,
): number {
  if (depth === 0) return minMs
  if (outPerSecond === 0) return unknownRateMs[asking]
  const estimateMs = Math.ceil((depth / outPerSecond) * 1_000)
  return Math.min(Math.max(estimateMs, minMs), maxMs)
}

/** Looks at a broker's depth now and then, and not for everybody who asks. */
export class WaitEstimate {
  readonly #broker: Broker
  #looked: Promise<Depth> | undefined
  #lookedAt = 0

  constructor(broker: Broker) {
    this.#broker = broker
  }

  /** Estimates the wait in ms. Never rejects: an accepted job stays accepted, with or without an estimate. */
  async waitMs(asking: keyof typeof unknownRateMs): Promise<number> {
    try {
      return expectedWaitMs(await this.#recent(), asking)
    } catch {
      // Who asks for the depth itself is told.
      return unknownRateMs[asking]
    }
  }

  /** As it was half a second ago at most. */
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
