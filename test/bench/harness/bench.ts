import type { Report } from '../report/report.ts'
import type { Cleanups } from './cleanups.ts'

export interface Bench {
  /** About nine minutes in all: fewer and shorter rounds, and smaller sizes. */
  readonly quick: boolean
  isChosen(name: string): boolean
  readonly report: Report
  readonly cleanups: Cleanups
}

export interface Suite {
  readonly name: string
  run(bench: Bench): Promise<void>
}
