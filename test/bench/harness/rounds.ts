import type { Report } from '../report/report.ts'
import type { Figures } from './figures.ts'
import { note, progress } from './progress.ts'

/** Who a subject is in comparisons: ratios are ours against each of the others, and the best one is a peer. */
type Role = 'ours' | 'peer' | 'reference'

export interface Contender {
  readonly name: string
  readonly role: Role
}

export interface Series {
  readonly contender: Contender
  readonly rounds: readonly Figures[]
}

export interface RoundsOptions<C extends Contender> {
  readonly suite: string
  readonly name: string
  readonly contenders: readonly C[]
  readonly rounds: number
  readonly roundMs: number
  /** Measures one round of one contender. The first of each is a warm-up, of a length of its own, whose figures are dropped. */
  measure(contender: C, durationMs: number): Promise<Figures>
}

const warmUpMs = 200

/**
 * Measures in turn, A B C A B C …, so that a slow spell of the machine meets everybody. A contender that fails is left out, which the
 * report says.
 */
export async function interleave<C extends Contender>(
  report: Report,
  options: RoundsOptions<C>,
): Promise<Series[]> {
  const { suite, name, contenders, rounds, roundMs, measure } = options
  const figures = new Map<C, Figures[]>(contenders.map((contender) => [contender, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const [contender, list] of figures) {
      progress(`${suite} · ${name} · ${contender.name}`)
      const durationMs = round === 0 ? Math.min(warmUpMs, 2 * roundMs) : roundMs
      try {
        const measured = await measure(contender, durationMs)
        if (round > 0) list.push(measured)
      } catch (error) {
        leaveOut(report, { suite, case: name, subject: contender.name, error })
        figures.delete(contender)
      }
    }
  }
  return [...figures].map(([contender, list]) => ({ contender, rounds: list }))
}

interface LeftOut {
  readonly suite: string
  readonly case: string
  readonly subject: string
  readonly error: unknown
}

/** Says that a subject is not measured, and why, and lists it in the report. */
export function leaveOut(report: Report, { error, ...place }: LeftOut): void {
  note(`${place.suite} · ${place.case} · ${place.subject} is left out: ${String(error)}`)
  report.failures.push({ ...place, reason: String(error) })
}
