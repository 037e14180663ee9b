import type { Algorithm, Counted } from './algorithm.ts'
import { concurrency } from './concurrency.ts'
import { fixedWindow } from './fixed-window.ts'
import { leakyBucket } from './leaky-bucket.ts'
import type { CountingName } from './names.ts'
import { penalty } from './penalty.ts'
import { slidingCounter } from './sliding-counter.ts'
import { slidingLog } from './sliding-log.ts'
import { tokenBucket } from './token-bucket.ts'

/** The algorithm of each name. A state goes only to the algorithm that created it. */
export const algorithms: { readonly [name in CountingName]: Algorithm<Counted> } = {
  'sliding-log': slidingLog,
  'sliding-counter': slidingCounter,
  'fixed-window': fixedWindow,
  'token-bucket': tokenBucket,
  'leaky-bucket': leakyBucket,
  concurrency,
  penalty,
}
