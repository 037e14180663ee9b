import type { Check } from '../check.ts'
import type { Algorithm } from './algorithm.ts'
import { type Bucket, bucket, msUntilLevel } from './bucket.ts'

/**
 * A bucket as a queue: requests leave it one unit every `windowMs / limit`, the first at once, and each is held until its turn. A request
 * of n units is as n requests of one, so its last unit has to find room too.
 */
export const leakyBucket: Algorithm<Bucket> = {
  ...bucket(queueLevel),

  delayMs(state, check, now) {
    return check.cost === 0 ? 0 : msUntilLevel(state, check, { now, target: 0 })
  },
}

/** The highest level: what may wait, by number and by time, and the unit that leaves at once. */
function queueLevel({ policy, limit }: Check): number {
  const { windowMs, queue, maxDelayMs } = policy
  const waiting = Math.min(queue * windowMs, maxDelayMs * limit)
  return Math.min(waiting, Number.MAX_SAFE_INTEGER - windowMs) + windowMs
}
