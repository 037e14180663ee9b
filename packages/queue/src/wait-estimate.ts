import type { Broker, Depth } from './broker.ts'

/** Where nothing has drained yet, so that nobody knows how fast it will: for who is refused, and for who polls. */
const unknownRateMs = { refused: 5_000, polling: 2_000 } as const

const minMs = 1_000
const maxMs = 3_600_000

/** How long a look at the queue is good for: whoever is refused asks, and a herd is refused at once. */
const freshMs = 500

/** How long a full queue takes to drain, as it has drained of late: depth ÷ rate, from a second to an hour. */
function drainMs({ depth, outPerSecond }: Depth, asking: keyof typeof unknownRateMs): number {
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

  /** How long the queue takes to drain. Never rejects: a job that was accepted stays so, with or without an estimate. */
  async drainMs(asking: keyof typeof unknownRateMs): Promise<number> {
    try {
      return drainMs(await this.#recent(), asking)
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
