import type { Report } from '../report/report.ts'
import type { Figures } from './figures.ts'
import { note, progress } from './progress.ts'

/** Who a subject is in comparisons: ratios are ours against each of the others, and the best one is a peer. */
type Role = 'ours' | 'peer' | 'reference'

export interface Contender {
  readonly name: string
  readonly role: Role
}

export interface Series<C extends Contender = Contender> {
  readonly contender: C
  readonly rounds: readonly Figures[]
}

interface Place {
  readonly suite: string
  readonly name: string
}

/** Opens what a case measures of each contender, one after the other. One that fails is left out. */
export async function openEach<C extends Contender, Opened>(
  report: Report,
  {
    contenders,
    open,
    ...place
  }: Place & {
    readonly contenders: Iterable<C>
    open(contender: C): Promise<Opened>
  },
): Promise<Map<C, Opened>> {
  const opened = new Map<C, Opened>()
  for (const contender of contenders) {
    progress(`${place.suite} · ${place.name} · opening ${contender.name}`)
    try {
      opened.set(contender, await open(contender))
    } catch (error) {
      leaveOut(report, place, { contender, error })
    }
  }
  return opened
}

export interface RoundsOptions<C extends Contender, Opened> extends Place {
  readonly opened: ReadonlyMap<C, Opened>
  readonly rounds: number
  readonly roundMs: number
  /** Measures one round of one contender. The first of each is a warm-up, of a length of its own, whose figures are dropped. */
  measure(opened: Opened, durationMs: number): Promise<Figures>
}

const warmUpMs = 200

/**
 * Measures in turn, A B C A B C …, so that a slow spell of the machine meets everybody. A contender that fails is left out, which the
 * report says.
 */
export async function interleave<C extends Contender, Opened>(
  report: Report,
  { opened, rounds, roundMs, measure, ...place }: RoundsOptions<C, Opened>,
): Promise<Series<C>[]> {
  const all = [...opened].map(
    ([contender, own]) => [contender, { own, list: [] as Figures[] }] as const,
  )
  const taking = new Map(all)
  for (let round = 0; round <= rounds; round++) {
    for (const [contender, { own, list }] of taking) {
      progress(`${place.suite} · ${place.name} · ${contender.name}`)
      const durationMs = round === 0 ? Math.min(warmUpMs, 2 * roundMs) : roundMs
      try {
        const measured = await measure(own, durationMs)
        if (round > 0) list.push(measured)
      } catch (error) {
        leaveOut(report, place, { contender, error })
        taking.delete(contender)
      }
    }
  }
  return [...taking].map(([contender, { list }]) => ({ contender, rounds: list }))
}

/** Says that a subject is not measured, and why, and lists it in the report. */
function leaveOut(
  { failures }: Report,
  { suite, name }: Place,
  { contender, error }: { contender: Contender; error: unknown },
): void {
  note(`${suite} · ${name} · ${contender.name} is left out: ${String(error)}`)
  failures.push({ suite, case: name, subject: contender.name, reason: String(error) })
}
