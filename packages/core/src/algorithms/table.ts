import type { Algorithm } from './algorithm.ts'
import { fixedWindow } from './fixed-window.ts'
import type { AlgorithmName } from './names.ts'
import { slidingCounter } from './sliding-counter.ts'
import { slidingLog } from './sliding-log.ts'

/** The algorithm of each name. A state goes only to the algorithm that created it. */
export const algorithms: { readonly [name in AlgorithmName]: Algorithm<unknown> } = {
  'sliding-log': slidingLog,
  'sliding-counter': slidingCounter,
  'fixed-window': fixedWindow,
}
