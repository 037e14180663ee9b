import { type CellRun, type FleetRun, windowMs } from './cell.ts'
import { delayWithin } from './loop-delays.ts'
import { awayTimes } from './measure.ts'

export interface UnexpectedOpening {
  readonly instance: number
  /** Whether event loops were delayed for so long just before that they explain it: of the process, or of the one that passes on what Redis replies. */
  readonly isHeldUp: boolean
}

/** The openings of breakers that no fault explains. */
export function unexpectedOpenings(
  { fault, marks, deadlineMs, loop }: CellRun,
  { apis, reports }: FleetRun,
): readonly UnexpectedOpening[] {
  const { begun, recovered } = marks
  return apis.flatMap(({ events }, instance) => {
    const own = reports[instance]?.loop ?? []
    const heldUpMs = (at: number): number =>
      [own, loop].reduce((sum, one) => sum + delayWithin(one, at - 2 * deadlineMs, at), 0)
    return awayTimes(events)
      .filter(({ from }) => fault.store === 'works' || from < begun || from > recovered - windowMs)
      .map(({ from }) => ({ instance, isHeldUp: heldUpMs(from) >= deadlineMs / 2 }))
  })
}
