import type { Figures } from './figures.ts'
import { note } from './progress.ts'

/** Who a subject is in comparisons: ratios are ours against each of the others, and the best one is a peer. */
export type Role = 'ours' | 'peer' | 'reference'

export interface Contender {
  readonly name: string
  readonly role: Role
}

/** The figures of one contender, a set for every round. */
export interface Series {
  readonly contender: Contender
  readonly rounds: readonly Figures[]
}

export interface RoundsOptions<C extends Contender> {
  readonly contenders: readonly C[]
  readonly rounds: number
  readonly roundMs: number
  /** Measures one round of one contender. The first of each is a warm-up, of a length of its own, whose figures are dropped. */
  measure(contender: C, durationMs: number): Promise<Figures>
  /** Told which contender was left out, and why. */
  onFailure(contender: C, error: unknown): void
}

const warmUpMs = 200

/** Measures in turn, A B C A B C …, so that a slow spell of the machine meets everybody. A contender that fails is left out. */
export async function interleave<C extends Contender>(
  options: RoundsOptions<C>,
): Promise<Series[]> {
  const { contenders, rounds, roundMs, measure, onFailure } = options
  const figures = new Map<C, Figures[]>(contenders.map((contender) => [contender, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const [contender, list] of figures) {
      try {
        const measured = await measure(
          contender,
          round === 0 ? Math.min(warmUpMs, 2 * roundMs) : roundMs,
        )
        if (round > 0) list.push(measured)
      } catch (error) {
        note(`${contender.name} is left out: ${String(error)}`)
        figures.delete(contender)
        onFailure(contender, error)
      }
    }
  }
  return [...figures].map(([contender, list]) => ({ contender, rounds: list }))
}
