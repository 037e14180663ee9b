import type { Report } from '../report/report.ts'
import type { Cleanups } from './cleanups.ts'

/** What a suite works with. */
export interface Bench {
  /** About three minutes in all: fewer and shorter rounds, and smaller sizes. */
  readonly quick: boolean
  /** Part of the names of the cases to measure. @default all */
  readonly case?: string | undefined
  readonly report: Report
  readonly cleanups: Cleanups
}

export function isChosen({ case: text = '' }: Pick<Bench, 'case'>, name: string): boolean {
  return name.includes(text)
}

export interface Suite {
  readonly name: string
  run(bench: Bench): Promise<void>
}
