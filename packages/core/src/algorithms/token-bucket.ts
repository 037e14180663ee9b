import type { Algorithm } from './algorithm.ts'
import { type Bucket, bucket, shareOf } from './bucket.ts'
import { checkUnits, wholeUnits } from './max-units.ts'

export interface TokenBucketOptions {
  /**
   * `token-bucket` only: units that may be taken at once after a pause, a whole number ≥ 1.
   * @default the limit
   */
  burst?: number | undefined
}

export interface TokenBucketSettings {
  /** `token-bucket`: its capacity; `undefined`: the current limit. */
  readonly burst: number | undefined
}

/** A bucket that allows bursts of `burst` units, then `limit` units per window. */
export const tokenBucket: Algorithm<Bucket, TokenBucketSettings, TokenBucketOptions> = bucket({
  keyName: 'bucket',
  capacityLevel: ({ policy, limit }) => (policy.burst ?? limit) * policy.windowMs,
  divide: ({ burst }, instances) =>
    burst === undefined ? undefined : { burst: shareOf(burst, instances) },
  options: {
    fields: { burst: { form: 'units', min: 1 } },
    read({ burst: value }, windowMs, at) {
      if (value === undefined) return { burst: undefined }
      const burst = wholeUnits(value, { option: at('burst') }, 1)
      checkUnits(burst, { windowMs }, at('burst'))
      return { burst }
    },
  },
})
