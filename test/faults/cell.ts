import { setTimeout as sleep } from 'node:timers/promises'
import type { PolicyOptions } from '@sluice/core'
import { until } from '../support/until.ts'
import type { Framework, Route } from './api-messages.ts'
import type { EndFault, Fault } from './fault.ts'
import { type Fleet, startFleet } from './fleet.ts'
import { ask, type Sample, type Stream, startLoad } from './load.ts'
import { type RunningRig, startRig } from './rig.ts'
import { type LoopDelay, monotonicMs, watchLoop } from './timing.ts'

/** What all APIs are limited by: one window that fills, and one that tells in the end how much was taken in all. */
export const limit = 80
export const windowMs = 2_000
const total: PolicyOptions = { name: 'total', limit: 1_000_000, window: '5m' }
const burst = { name: 'burst', limit, window: windowMs }

/** The longest back-off, the longest ramp, and some patience. */
const RECOVERY_TIMEOUT_MS = 10_000 + 2_500 + 7_500
/** The breaker may be between two probes when a fault ends that it hardly noticed. */
const CALM_MS = 300

type Rates = Readonly<Partial<Record<Route, number>>>

export interface CellOptions {
  readonly fault: Fault
  readonly size: number
  readonly frameworks: readonly Framework[]
  /** Requests a second to each fleet, for each route that is asked. */
  readonly rates: Rates
  readonly deadlineMs: number
  readonly beforeMs: number
  readonly lastsMs: number
  /** Whether processes take grants of the window that fills. @default false */
  readonly prefetch?: boolean
}

export type FleetRun = Awaited<ReturnType<typeof reportOn>>

export interface CellRun extends CellOptions {
  readonly marks: Awaited<ReturnType<typeof marksUnderLoad>>
  readonly fleets: readonly FleetRun[]
  /** Of this process, which sends the requests and passes on what Redis replies. */
  readonly loop: readonly LoopDelay[]
}

export async function runCell(options: CellOptions): Promise<CellRun> {
  const { fault } = options
  using watch = watchLoop()
  await using rig = await startRig(fault)
  const end = fault.beforeBoot ? await rig.inflict() : undefined
  const fleets = await startFleets(rig, options)
  try {
    rig.attach(fleets)
    return { ...(await runUnderLoad(rig, fleets, { options, end })), loop: watch.delays }
  } finally {
    await Promise.all(fleets.map((fleet) => fleet.close()))
  }
}

function startFleets(
  { connections }: RunningRig,
  { deadlineMs, fault, frameworks, rates, size, prefetch = false }: CellOptions,
) {
  const settings = {
    ...{ connections, deadlineMs, modes: routesOf(rates), ownClock: fault.ownClock ?? false },
    policies: [prefetch ? { ...burst, prefetch: windowMs / 10 } : burst, total],
    // Without the store nobody can count the fleet.
    instances: fault.beforeBoot ? size : undefined,
  }
  return Promise.all(
    frameworks.map((framework) => startFleet({ ...settings, framework, prefix: framework }, size)),
  )
}

async function runUnderLoad(
  rig: RunningRig,
  fleets: readonly Fleet[],
  { options, end }: { options: CellOptions; end: EndFault | undefined },
): Promise<Omit<CellRun, 'loop'>> {
  const { rates } = options
  const streams = fleets.flatMap((fleet) =>
    routesOf(rates).map((route): Stream => ({ fleet, route, perSecond: rates[route] ?? 0 })),
  )
  const load = startLoad(streams)
  const marks = await marksUnderLoad(rig, fleets, { options, end }).finally(() => load.stop())
  const runs: FleetRun[] = []
  await Promise.all(fleets.map(askUntilBack))
  for (const fleet of fleets) runs.push(await reportOn(fleet, load.samples))
  return { ...options, marks, fleets: runs }
}

/** When the phases of a cell began, by `monotonicMs`: by `recovered` all traffic is back at the store. */
async function marksUnderLoad(
  rig: RunningRig,
  fleets: readonly Fleet[],
  { options, end }: { options: CellOptions; end: EndFault | undefined },
) {
  const { beforeMs, lastsMs } = options
  const loaded = monotonicMs()
  if (!end) await sleep(beforeMs)
  const begun = monotonicMs()
  const finish = end ?? (await rig.inflict())
  await sleep(lastsMs)
  await finish()
  const ended = monotonicMs()
  await untilRecovered(fleets)
  const recovered = monotonicMs()
  await sleep(windowMs + 500)
  return { loaded, begun, ended, recovered, stopped: monotonicMs() }
}

function routesOf(rates: Rates): readonly Route[] {
  return Object.keys(rates) as Route[]
}

async function untilRecovered(fleets: readonly Fleet[]): Promise<void> {
  const apis = fleets.flatMap((fleet) => fleet.apis)
  await sleep(CALM_MS)
  await until(
    'all traffic is back at the store',
    () => apis.every(({ breaker, isAway }) => breaker === 'closed' && !isAway),
    { timeoutMs: RECOVERY_TIMEOUT_MS },
  )
}

/**
 * A machine that stopped at the very end may have opened a breaker. A process tells the store of what it
 * admitted meanwhile when its traffic is back, and so it has to be asked.
 */
async function askUntilBack(fleet: Fleet): Promise<void> {
  const patientUntil = monotonicMs() + RECOVERY_TIMEOUT_MS
  for (const [instance, api] of fleet.apis.entries()) {
    while ((api.breaker !== 'closed' || api.isAway) && monotonicMs() < patientUntil) {
      await ask(fleet, { instance, route: 'fallback', key: 'quiet-last' }).answered
      await sleep(20)
    }
  }
}

async function reportOn(fleet: Fleet, samples: readonly Sample[]) {
  const { framework } = fleet.settings
  const report = () => Promise.all(fleet.apis.map((api) => api.report()))
  const patientUntil = monotonicMs() + RECOVERY_TIMEOUT_MS
  // A process may still be telling the store what it has admitted meanwhile.
  while ((await report()).some(({ keysOwed }) => keysOwed > 0) && monotonicMs() < patientUntil) {
    await sleep(100)
  }
  const reports = await report()
  const endings = await Promise.all(fleet.apis.map((api) => api.close()))
  return {
    framework,
    apis: fleet.apis,
    reports,
    samples: samples.filter((sample) => sample.framework === framework),
    /** Units that the store knows of for the hot key of the route `fallback`. */
    chargedInAll: reports[0]?.chargedInAll,
    endedAlone: endings.every(Boolean),
  }
}
