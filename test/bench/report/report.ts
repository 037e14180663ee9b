import { type Figures, medianRatios, medians } from '../harness/figures.ts'
import type { Series } from '../harness/rounds.ts'
import { difference } from './figure-labels.ts'

interface Place {
  readonly suite: string
  readonly case: string
  readonly subject: string
}

export interface Row extends Place {
  readonly figures: Figures
}

/** How one of ours compares with another subject, each ratio ours / theirs. */
export interface Comparison extends Place {
  readonly against: string
  readonly ratios: Figures
}

export interface Failure extends Place {
  readonly reason: string
}

export class Report {
  readonly rows: Row[] = []
  readonly comparisons: Comparison[] = []
  readonly failures: Failure[] = []
  readonly notes: string[] = []
  readonly versions: Record<string, string> = {}

  /** Adds the medians of each contender, and the ratios of ours to all others, from the rounds of one case. */
  add(suite: string, caseName: string, series: readonly Series[]): void {
    const place = { suite, case: caseName }
    for (const { contender, rounds } of series) {
      this.rows.push({ ...place, subject: contender.name, figures: medians(rounds) })
    }
    for (const ours of series.filter(({ contender }) => contender.role === 'ours')) {
      for (const other of series.filter(({ contender }) => contender.role !== 'ours')) {
        this.comparisons.push({
          ...place,
          subject: ours.contender.name,
          against: other.contender.name,
          ratios: ratiosOf(ours.rounds, other.rounds),
        })
      }
    }
  }
}

/** Round by round, which a slow spell does not disturb; of a difference, that of the medians. */
function ratiosOf(ours: readonly Figures[], theirs: readonly Figures[]): Figures {
  const { [difference]: ratio } = medianRatios([medians(ours)], [medians(theirs)])
  return { ...medianRatios(ours, theirs), ...(ratio !== undefined && { [difference]: ratio }) }
}
