import { countOption, type Option } from '@sluice/core'

/** The options of a guard, and one more: the one entry that a new option needs. */
export class SpareTable {
  /** Requests that nobody counts. @default 3 */
  spare?: Option<number, number> = countOption(3, { min: 1, max: 9 })
}
