import { type Figures, medianRatios, medians, ratiosOfMedians } from '../harness/figures.ts'
import type { Series } from '../harness/rounds.ts'
import { figureLabels } from './figure-labels.ts'

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

/** All that was measured. */
export class Report {
  readonly rows: Row[] = []
  readonly comparisons: Comparison[] = []
  readonly failures: Failure[] = []
  /** What a reader of the figures has to know of how they were measured. */
  readonly notes: string[] = []
  /** Of the software that took part, by name. */
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

/** Round by round, which a slow spell does not disturb; for differences by their medians. */
function ratiosOf(ours: readonly Figures[], theirs: readonly Figures[]): Figures {
  const ofMedians = Object.entries(ratiosOfMedians(ours, theirs))
  const differences = ofMedians.filter(([name]) => figureLabels[name]?.difference)
  return { ...medianRatios(ours, theirs), ...Object.fromEntries(differences) }
}
