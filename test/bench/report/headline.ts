import { figureLabels } from './figure-labels.ts'
import type { Comparison, Report } from './report.ts'

/** A question that the benchmark is there to answer. */
export interface Question {
  readonly text: string
  readonly suite: string
  readonly case: string
  readonly subject: string
  readonly figure: string
  /** Whom it is compared with. @default the best peer of the case */
  readonly against?: string
  readonly unit?: string
}

/** The answer: a ratio, ours / theirs, and what both measured. */
export interface Headline {
  readonly text: string
  readonly ratio: number
  readonly ours: number
  readonly theirs: number
  readonly against: string
  readonly unit: string
}

/** Answers what was measured in this run; questions about other suites stay open. */
export function answerQuestions(report: Report, questions: readonly Question[]): Headline[] {
  return questions.flatMap((question) => answer(report, question) ?? [])
}

function answer(report: Report, question: Question): Headline | undefined {
  const { text, figure, unit = '' } = question
  const ours = report.row(question)?.figures[figure]
  const comparison = comparisonOf(report, question)
  if (ours === undefined || !comparison) return undefined
  const theirs = theirFigure(report, comparison, figure)
  const ratio = comparison.ratios[figure] ?? ours / theirs
  return { text, ratio, ours, theirs, against: comparison.against, unit }
}

function comparisonOf(report: Report, question: Question): Comparison | undefined {
  const { figure, against } = question
  const all = report.comparisons.filter(
    (one) =>
      one.suite === question.suite &&
      one.case === question.case &&
      one.subject === question.subject &&
      !Number.isNaN(theirFigure(report, one, figure)),
  )
  if (against !== undefined) return all.find((one) => one.against === against)
  const sign = figureLabels[figure]?.better === 'higher' ? -1 : 1
  return all
    .filter(({ role }) => role === 'peer')
    .sort((a, b) => sign * (theirFigure(report, a, figure) - theirFigure(report, b, figure)))[0]
}

function theirFigure(report: Report, comparison: Comparison, figure: string): number {
  const row = report.row({ ...comparison, subject: comparison.against })
  return row?.figures[figure] ?? Number.NaN
}
