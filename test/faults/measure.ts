import { type CellRun, type FleetRun, windowMs } from './cell.ts'
import type { TimedEvent } from './fleet.ts'
import type { Sample } from './load.ts'
import { delayWithin } from './timing.ts'

/** A request with what its process says of it. */
export interface Measured extends Sample {
  readonly arrivedAt: number
  readonly repliedAt: number
  /** From being given to the limiter to being let pass or refused. */
  readonly tookMs: number
  /** The same, less the delay of the event loop meanwhile. */
  readonly waitMs: number
}

export function measured({ samples, reports }: FleetRun): readonly Measured[] {
  const times = reports.map(({ requests }) => new Map(requests.map((times) => [times[0], times])))
  return samples.flatMap((sample) => {
    const found = times[sample.instance]?.get(sample.id)
    if (!found) return []
    const [, arrivedAt, askedAt, decidedAt, repliedAt] = found
    const delayMs = delayWithin(reports[sample.instance]?.loop ?? [], askedAt, decidedAt)
    const tookMs = decidedAt - askedAt
    return [{ ...sample, arrivedAt, repliedAt, tookMs, waitMs: Math.max(0, tookMs - delayMs) }]
  })
}

/** From the first opening of a breaker on until it closed. */
export function awayTimes(events: readonly TimedEvent[]) {
  const times: { from: number; until: number }[] = []
  let from: number | undefined
  for (const { at, event } of events) {
    if (event.type !== 'breaker') continue
    if (event.state === 'open') from ??= at
    if (event.state === 'closed' && from !== undefined) {
      times.push({ from, until: at })
      from = undefined
    }
  }
  if (from !== undefined) times.push({ from, until: Number.POSITIVE_INFINITY })
  return times
}

/** The requests that came while the breaker of their process was open, without those that it sent to find out. */
export function withoutStore(run: FleetRun, requests: readonly Measured[]): readonly Measured[] {
  return run.apis.flatMap(({ events }, instance) => {
    const own = requests
      .filter((request) => request.instance === instance)
      .sort((a, b) => a.arrivedAt - b.arrivedAt)
    const probes = new Set(
      events.flatMap(({ at, event }) => {
        if (event.type !== 'breaker' || event.state !== 'half-open') return []
        const probe = own.findLast(({ arrivedAt }) => arrivedAt <= at)
        return probe ? [probe] : []
      }),
    )
    const times = awayTimes(events)
    return own.filter(
      (request) =>
        !probes.has(request) &&
        times.some(({ from, until }) => request.arrivedAt > from && request.arrivedAt < until),
    )
  })
}

/** The first of some names that does not follow, anywhere, on the one before. */
export function firstMissing(
  wanted: readonly string[],
  names: readonly string[],
): string | undefined {
  let from = 0
  for (const name of wanted) {
    const index = names.indexOf(name, from)
    if (index === -1) return name
    from = index + 1
  }
  return undefined
}

/**
 * The openings of breakers that no fault explains. One is held up if event loops were delayed for so long just before that they explain it:
 * of its process, or of the one that passes on what Redis replies.
 */
export function unexpectedOpenings(
  { fault, marks, deadlineMs, loop }: CellRun,
  { apis, reports }: FleetRun,
): readonly { readonly instance: number; readonly isHeldUp: boolean }[] {
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
