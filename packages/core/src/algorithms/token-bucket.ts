import type { Check } from '../check.ts'
import type { Algorithm } from './algorithm.ts'
import { type Bucket, bucket } from './bucket.ts'

/** A bucket that takes bursts of `burst` units, and after them `limit` units a window. */
export const tokenBucket: Algorithm<Bucket> = bucket(
  ({ policy, limit }: Check) => (policy.burst ?? limit) * policy.windowMs,
)
