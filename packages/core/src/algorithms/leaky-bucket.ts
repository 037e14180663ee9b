import { type Duration, durationMs } from '../options/duration.ts'
import { invalid, orDefault } from '../options/options.ts'
import { maxTimerMs } from '../waiting/timers.ts'
import type { Algorithm, CountingCheck } from './algorithm.ts'
import { type Bucket, bucket, msUntilLevel } from './bucket.ts'
import { checkUnits, wholeUnits } from './max-units.ts'

export interface LeakyBucketOptions {
  /**
   * `leaky-bucket` only: maximum number of units that may wait, a whole number ≥ 0.
   * @default as many as `maxDelay` allows
   */
  queue?: number | undefined
  /**
   * `leaky-bucket` only: the longest time that a request is held.
   * @default '30s'; none with `queue`
   */
  maxDelay?: Duration | undefined
}

export interface LeakyBucketSettings {
  /** `leaky-bucket`: the most units that wait; `Infinity` if only `maxDelayMs` bounds them. */
  readonly queue: number
  /** `leaky-bucket`: the longest wait. */
  readonly maxDelayMs: number
}

/**
 * A bucket as a queue: one unit leaves every `windowMs / limit`, the first at once, and each
 * request is held until its turn. A request of n units counts as n requests of one unit, so its
 * last unit needs room too.
 */
export const leakyBucket: Algorithm<Bucket, LeakyBucketSettings, LeakyBucketOptions> = bucket({
  keyName: 'queue',
  capacityLevel: queueLevel,
  divide: ({ queue }, instances) =>
    Number.isFinite(queue) ? { queue: Math.floor(queue / instances) } : undefined,
  options: {
    fields: { queue: { form: 'units', min: 0 }, maxDelay: { form: 'duration' } },
    read(options, windowMs, at) {
      const queue =
        options.queue === undefined
          ? Number.POSITIVE_INFINITY
          : wholeUnits(options.queue, { option: at('queue') }, 0)
      checkUnits(queue + 1, { windowMs }, at('queue'))
      const option = at('maxDelay')
      const usualMs = options.queue === undefined ? 30_000 : maxTimerMs
      const maxDelayMs = durationMs(orDefault(options.maxDelay, usualMs), option)
      if (maxDelayMs <= maxTimerMs) return { queue, maxDelayMs }
      const legal = `at most ${maxTimerMs} ms (24 days), the longest timer`
      throw invalid({ option }, options.maxDelay, legal)
    },
  },

  // Units that leave within a window: more would fit, but clients would wait longer for them.
  quota: (check) => Math.min(check.limit, Math.floor(queueLevel(check) / check.policy.windowMs)),

  delayMs(state, check, now) {
    return check.cost === 0 ? 0 : msUntilLevel(state, check, { now, target: 0 })
  },
})

/**
 * The highest level: the units that may wait, by number and by time, plus the one that leaves at
 * once.
 */
function queueLevel({ policy, limit }: CountingCheck<LeakyBucketSettings>): number {
  const { windowMs, queue, maxDelayMs } = policy
  const waiting = Math.min(queue * windowMs, maxDelayMs * limit)
  return Math.min(waiting, Number.MAX_SAFE_INTEGER - windowMs) + windowMs
}
