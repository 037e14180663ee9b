import { answerQuestions, type Headline, type Question } from './headline.ts'
import type { Report } from './report.ts'

/** A ratio that has to be reached, ours / theirs. */
export interface Bar extends Question {
  readonly atMost?: number
  readonly atLeast?: number
  /** What would be better still; alone, where it is no bar. */
  readonly wanted?: number
  /** The bound is one of ours − theirs. */
  readonly isDifference?: boolean
}

export interface BarResult extends Headline {
  readonly bound: string
  /** The ratio, or the difference. */
  readonly value: number
  /** Nothing where there is no bar. */
  readonly isMet?: boolean
  /** Nothing where no more is wanted. */
  readonly isWantedMet?: boolean
}

/** How the figures of this run stand to the bars. What was not measured has no result. */
export function measureBars(report: Report, bars: readonly Bar[]): BarResult[] {
  return bars.flatMap((bar) =>
    answerQuestions(report, [bar]).map((headline) => resultOf(bar, headline)),
  )
}

function resultOf(bar: Bar, headline: Headline): BarResult {
  const { atMost, atLeast, wanted, isDifference = false } = bar
  const { ratio, theirs } = headline
  // By the ratio of the same rounds, which a slow spell of the machine does not disturb.
  const value = isDifference ? (ratio - 1) * theirs : ratio
  const reaches = (least: number | undefined, most: number | undefined): boolean =>
    (most === undefined || value <= most) && (least === undefined || value >= least)
  const unit = isDifference ? headline.unit : '×'
  const sign = atLeast === undefined ? '≤' : '≥'
  const bound = atLeast ?? atMost
  return {
    ...headline,
    value,
    bound: boundText({ bound, wanted, sign, unit }),
    ...(bound === undefined ? {} : { isMet: reaches(atLeast, atMost) }),
    ...(wanted === undefined
      ? {}
      : {
          isWantedMet:
            atLeast === undefined ? reaches(undefined, wanted) : reaches(wanted, undefined),
        }),
  }
}

interface BoundText {
  readonly bound: number | undefined
  readonly wanted: number | undefined
  readonly sign: string
  readonly unit: string
}

function boundText({ bound, wanted, sign, unit }: BoundText): string {
  if (bound === undefined) return `(wanted ${sign} ${wanted} ${unit})`
  return `${sign} ${bound} ${unit}${wanted === undefined ? '' : ` (wanted ${wanted})`}`
}
