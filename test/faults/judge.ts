import { quantile } from '../bench/harness/figures.ts'
import { mostWithin } from '../support/most-within.ts'
import { type CellRun, type FleetRun, limit, windowMs } from './cell.ts'
import { hotKey } from './load.ts'
import {
  awayTimes,
  firstMissing,
  type Measured,
  measured,
  unexpectedOpenings,
  withoutStore,
} from './measure.ts'

/** What waits are measured against. */
export interface WaitBounds {
  /** How much longer than the deadline a request may wait. */
  readonly overDeadlineMs: number
  /** The 99th percentile of what the limiter takes while the breaker is open; `undefined`: not judged. */
  readonly openP99Ms: number | undefined
  /** The machine may be so busy that Redis is late without a fault: then breakers may open too. */
  readonly isBusy: boolean
}

const strictWaits: WaitBounds = { overDeadlineMs: 50, openP99Ms: 2, isBusy: false }

/** Of fewer the 99th percentile is one of the five longest, and says nothing. */
const enoughForP99 = 500

/** A fleet that is cut off may admit a tenth more than the limit, and the onset one limit on top. */
const cutOffShare = 1.1
/** Of what is admitted while connections are lost all the time, that much at most is sent twice. */
const resentShare = 0.1

export type Verdict = ReturnType<typeof judge>

/** What became of a fleet, with its `problems`: empty when all is as it should be. */
export function judge(cell: CellRun, fleet: FleetRun, bounds: WaitBounds = strictWaits) {
  const requests = measured(fleet)
  const { marks } = cell
  const groups = {
    meanwhile: requests.filter(
      ({ arrivedAt }) => arrivedAt >= marks.begun && arrivedAt <= marks.recovered,
    ),
    alone: withoutStore(fleet, requests),
    hot: requests.filter(
      ({ route, key, status }) =>
        route === 'fallback' && status === 200 && key === hotKey('fallback'),
    ),
  }
  const { meanwhile, alone, hot } = groups
  const figures = figuresOf(cell, fleet, groups)
  const { openP99Ms = Infinity } = bounds
  const p99 = alone.length < enoughForP99 ? 0 : (figures.openWaits?.p99 ?? 0)
  const problems = [
    ...answerProblems(figures, requests, alone),
    ...(p99 > openP99Ms ? [`p99 ${p99.toFixed(2)} ms while the breaker was open`] : []),
    ...tooLong(cell, meanwhile, cell.deadlineMs + bounds.overDeadlineMs),
    // What is admitted tells of the machine where a breaker opened without a fault.
    ...(unexpectedOpenings(cell, fleet).some(({ isHeldUp }) => bounds.isBusy || isHeldUp)
      ? []
      : admissionProblems(cell, fleet, figures)),
    ...chargeProblems(cell, figures, { hot, reports: fleet.reports }),
    ...eventProblems(cell, fleet, { figures, isBusy: bounds.isBusy }),
  ]
  return { ...figures, problems }
}

type Figures = ReturnType<typeof figuresOf>
type Groups = Readonly<Record<'meanwhile' | 'alone' | 'hot', readonly Measured[]>>

function figuresOf(cell: CellRun, fleet: FleetRun, { meanwhile, alone, hot }: Groups) {
  const { marks } = cell
  return {
    framework: fleet.framework,
    requests: fleet.samples.length,
    answered: fleet.samples.filter(({ status }) => status !== 0).length,
    /** What the routes of these modes answered while the breaker was open: let pass, and refused with 503. */
    modes: {
      passedOpen: alone.filter(({ route, status }) => route === 'open' && status === 200).length,
      refusedClosed: alone.filter(({ route, status }) => route === 'closed' && status === 503)
        .length,
    },
    /** From the begin of the fault until all traffic was back. */
    waits: waitsOf(meanwhile),
    /** Of requests while the breaker was open. */
    openWaits: alone.length === 0 ? undefined : waitsOf(alone),
    admitted: admittedBy(cell, fleet, hot),
    admittedInAll: hot.length,
    chargedInAll: cell.fault.ownClock ? undefined : fleet.chargedInAll,
    ...eventCounts(fleet),
    /** How often a breaker opened without a fault, since the machine did not get on. */
    heldUp: unexpectedOpenings(cell, fleet).filter(({ isHeldUp }) => isHeldUp).length,
    recoveryMs: marks.recovered - marks.ended,
  }
}

function waitsOf(requests: readonly Measured[]) {
  const waits = requests.map(({ waitMs }) => waitMs)
  // Half of them are not delayed: less a delay that they did not have, they would take no time at all.
  const p50 = quantile(
    requests.map(({ tookMs }) => tookMs),
    0.5,
  )
  return { p50, p99: quantile(waits, 0.99), max: quantile(waits, 1) }
}

/** The most that the hot key was admitted in a rolling window. */
function admittedBy(cell: CellRun, fleet: FleetRun, hot: readonly Measured[]) {
  // Clocks of stores count whole milliseconds: what is a window apart by them may be one less by ours.
  const within = (from: number, to: number) =>
    mostWithin(
      hot.flatMap(({ arrivedAt: start, repliedAt: end }) =>
        start >= from && end <= to ? [{ start, end }] : [],
      ),
      windowMs - 1,
    )
  const { loaded, ended, recovered, stopped } = cell.marks
  const openings = fleet.apis.map(({ events }) => awayTimes(events)[0]?.from ?? Infinity)
  const allOpen = Math.max(...openings)
  const isCutOff = cell.fault.store === 'gone' && ended - allOpen > 500
  return {
    /** Of windows in which every process was without the store. */
    cutOff: isCutOff ? within(allOpen, ended) : undefined,
    most: within(loaded, stopped),
    after: within(recovered, stopped),
  }
}

function eventCounts({ apis }: FleetRun) {
  const events: Record<string, number> = {}
  let reconciledUnits = 0
  const add = (name: string, count = 1) => {
    events[name] = (events[name] ?? 0) + count
  }
  for (const { event } of apis.flatMap((api) => api.events)) {
    if (event.type === 'breaker') add(event.state)
    else if (event.type === 'late-reply') add(`late-reply ${event.charge}`)
    else add(event.type, event.type === 'deadline-missed' ? event.checks : 1)
    if (event.type === 'reconciled') reconciledUnits += event.units
  }
  for (const { code } of apis.flatMap((api) => api.storeErrors)) add(code)
  return { events, reconciledUnits }
}

function answerProblems(
  { requests: sent, answered }: Figures,
  requests: readonly Measured[],
  alone: readonly Measured[],
): string[] {
  const odd = requests.filter(
    ({ route, status }) => ![200, 429, ...(route === 'closed' ? [503] : [])].includes(status),
  )
  const stopped = alone.filter(({ route, status }) => route === 'open' && status !== 200)
  const passed = alone.filter(
    ({ route, status, retryAfter }) => route === 'closed' && (status !== 503 || !retryAfter),
  )
  return [
    ...(answered < sent ? [`${sent - answered} of ${sent} requests were not answered`] : []),
    ...some(odd, ({ route, status }) => `'${route}' answered ${status}`),
    ...some(stopped, ({ status }) => `'open' answered ${status} without the store`),
    ...some(passed, ({ status }) => `'closed' answered ${status} without the store`),
  ]
}

function some(requests: readonly Measured[], say: (request: Measured) => string): string[] {
  const [first] = requests
  return first ? [`${say(first)} (${requests.length} ×)`] : []
}

function tooLong({ marks }: CellRun, requests: readonly Measured[], longestMs: number): string[] {
  return some(
    requests.filter(({ waitMs }) => waitMs > longestMs),
    ({ waitMs, tookMs, arrivedAt, route, status }) => {
      const [afterMs, what] =
        arrivedAt < marks.ended
          ? [arrivedAt - marks.begun, 'begin']
          : [arrivedAt - marks.ended, 'end']
      return `'${route}' answered ${status} in ${waitMs.toFixed(0)} ms (${tookMs.toFixed(0)} with the event loop's delay), ${afterMs.toFixed(0)} ms after the ${what}`
    },
  )
}

/** A check that was not answered in time, which happens on a busy machine too, was decided without the store: each may be one more. */
function admissionProblems(
  { fault, marks }: CellRun,
  { apis }: FleetRun,
  { admitted }: Figures,
): string[] {
  const { cutOff = 0, most, after } = admitted
  const share = fault.admits ?? (fault.store === 'works' ? 1 : 1 + cutOffShare)
  const errors = apis.flatMap((api) => api.storeErrors)
  const lateAfter = errors.filter(({ at }) => at >= marks.recovered - windowMs).length
  // Where all processes lose the store, what is late is what the bound is about. Every second one of a split fleet keeps it.
  const keep = fault.splitsFleet ? apis.filter((_, instance) => instance % 2 === 0) : []
  const late = (fault.store === 'works' ? apis : keep).flatMap((api) => api.storeErrors).length
  return [
    ...(after > limit + lateAfter
      ? [`${after} of ${limit} admitted after the recovery, ${lateAfter} checks late`]
      : []),
    ...(cutOff > cutOffShare * limit ? [`${cutOff} of ${limit} admitted while cut off`] : []),
    ...(most > share * limit + late ? [`${most} of ${limit} admitted in a window`] : []),
  ]
}

/** What was admitted, the store has to know, or more: a reply that is lost may have charged what nobody was told of. */
function chargeProblems(
  { fault, marks }: CellRun,
  { chargedInAll: charged, events, reconciledUnits }: Figures,
  { hot, reports }: { hot: readonly Measured[]; reports: FleetRun['reports'] },
): string[] {
  if (charged === undefined) return fault.ownClock ? [] : ['the store does not say what it knows']
  const keptFrom = fault.losesData === 'acknowledged' ? marks.ended : marks.begun
  const known = fault.losesData
    ? hot.filter(({ arrivedAt }) => arrivedAt >= keptFrom).length
    : hot.length
  const errors = Object.entries(events).filter(([name]) => name.startsWith('SLUICE_'))
  const lost = errors.reduce((sum, [, count]) => sum + count, 0)
  // A request that was under way when the data was lost may have been charged, and admitted, before.
  const least = fault.losesData ? known - lost : known
  // When an answer is lost, what was admitted without the store is charged again, and some clients send again what was under way.
  const again = fault.store === 'flaky' ? reconciledUnits + resentShare * hot.length : 0
  return [
    ...(charged < least
      ? [
          `the store knows of ${charged} units of ${known} admitted; it has to be told of keys: ${reports.map(({ keysOwed }) => keysOwed).join()}`,
        ]
      : []),
    ...(charged > hot.length + lost + again
      ? [`${charged} charged for ${hot.length} admitted`]
      : []),
  ]
}

/** What follows an outage in every process, in this order. */
const outage = ['fallback-entered', 'open', 'half-open', 'closed', 'fallback-left']

function eventProblems(
  cell: CellRun,
  fleet: FleetRun,
  { figures: { events }, isBusy }: { figures: Figures; isBusy: boolean },
): string[] {
  const { fault } = cell
  const { apis, endedAlone } = fleet
  const sudden = unexpectedOpenings(cell, fleet).filter(({ isHeldUp }) => !isHeldUp)
  const unhandled = apis.flatMap((api) => api.unhandled)
  const expected = [...(fault.events ?? []), ...(fault.store === 'gone' ? ['reconciled'] : [])]
  const problems = expected
    .filter((name) => (events[name] ?? 0) === 0)
    .map((name) => `no event '${name}'`)
  for (const [index, api] of apis.entries()) {
    const names = api.events.map(({ event }) =>
      event.type === 'breaker' ? event.state : event.type,
    )
    const isLate = api.storeErrors.every(({ code }) => code === 'SLUICE_STORE_DEADLINE')
    const isExplained = isLate && (isBusy || !sudden.some(({ instance }) => instance === index))
    const mayOpen = fault.store !== 'works' || isExplained
    if (!mayOpen && names.includes('open')) problems.push('a breaker opened')
    if (fault.store !== 'gone') continue
    const missing = firstMissing(outage, names)
    if (missing) problems.push(`process ${index}: no '${missing}' in its place among its events`)
  }
  if (unhandled[0] !== undefined) problems.push(`unhandled: ${unhandled[0]}`)
  if (!endedAlone) problems.push('a process did not end by itself after close()')
  return problems
}
