import type { Broker, Depth } from './broker.ts'

/**
 * Waits (ms) for a refused and for a polling client while the rate is unknown, because no job has
 * ended yet.
 */
const unknownRateMs = { refused: 5_000, polling: 2_000 } as const

const minMs = 1_000
const maxMs = 3_600_000

/** Time (ms) for which a measured depth is reused: many clients may be refused at once. */
const freshMs = 500

/**
 * Returns the time (ms) until all jobs of the queue end, at the recent rate: depth ÷ rate, from a
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

/** Estimates a wait in ms. Never rejects: an accepted job stays accepted without an estimate. */
export type WaitEstimate = (asking: keyof typeof unknownRateMs) => Promise<number>

/** Creates an estimate that reads the broker's depth from time to time, not for every client. */
export function waitEstimateOf(broker: Broker): WaitEstimate {
  let looked: Promise<Depth> | undefined
  let lookedAt = 0

  /** Returns the depth, at most half a second old. */
  function recentDepth(): Promise<Depth> {
    const nowMs = Date.now()
    const isFresh = nowMs >= lookedAt && nowMs < lookedAt + freshMs
    if (looked && isFresh) return looked
    lookedAt = nowMs
    looked = broker.depth()
    looked.catch(() => {
      looked = undefined
    })
    return looked
  }

  return async (asking) => {
    try {
      return expectedWaitMs(await recentDepth(), asking)
    } catch {
      // The caller of `depth` receives the error.
      return unknownRateMs[asking]
    }
  }
}
