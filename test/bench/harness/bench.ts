import type { Report } from '../report/report.ts'
import type { Cleanups } from './cleanups.ts'

/** What a suite works with. */
export interface Bench {
  /** About nine minutes in all: fewer and shorter rounds, and smaller sizes. */
  readonly quick: boolean
  /** Whether a case is measured. */
  isChosen(name: string): boolean
  readonly report: Report
  readonly cleanups: Cleanups
}

export interface Suite {
  readonly name: string
  run(bench: Bench): Promise<void>
}
