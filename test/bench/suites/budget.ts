import { contenders } from '../concurrency/concurrency-contenders.ts'
import { type Bench, isChosen, type Suite } from '../harness/bench.ts'
import { startBenchRedis } from '../harness/bench-redis.ts'
import { type Figures, medians } from '../harness/figures.ts'
import { choosePinning } from '../harness/pinning.ts'
import { progress } from '../harness/progress.ts'
import { type Contender, interleave, type Series } from '../harness/rounds.ts'
import { startContenders, type Worker, workerOf } from './concurrency.ts'

/** What each layer of a check through Redis costs of the process, in µs. For whoever makes Sluice faster: run only when it is named. */
export const budget: Suite = {
  name: 'budget',
  onDemand: true,
  async run(bench) {
    const redis = await startBenchRedis(bench)
    const pinning = choosePinning('Node', 'Redis')
    pinning.pin('Redis', redis.pid)
    bench.report.notes.push(`Suite budget: ${pinning.note}`)
    const { log, withoutResilience, withoutDenials, withoutDigest } = contenders
    const isLeft = isChosen(bench, names.leavingOut)
    const list = isLeft ? [log, withoutResilience, withoutDenials, withoutDigest] : [log]
    // The sources: a built package is one file, which tells no layers apart.
    const execArgv = ['--conditions=@sluice/source']
    const workers = await startContenders(bench, pinning, list, execArgv)
    const asked = list.map((contender): Variant => {
      const worker = workerOf(workers, contender)
      return { ...contender, worker, op: 'round' }
    })
    for (const { name, worker } of asked) {
      progress(`budget · filling ${name}`)
      await worker.ask('open', { ...setting, port: redis.port })
      await worker.ask('round', { inFlight: 64, durationMs: bench.quick ? 200 : 1_000 })
    }
    const worker = workerOf(workers, log)
    if (isChosen(bench, names.profile)) await byProfile(bench, worker)
    if (isLeft) await byLeavingOut(bench, [...asked, { ...replayed, worker }])
    for (const one of workers.values()) one.stop()
    await redis.stop()
  },
}

/** A contender, or part of one, and how its process is asked for a round. */
interface Variant extends Contender {
  readonly worker: Worker
  readonly op: 'round' | 'replay'
}

const setting = { client: 'ioredis 6', keys: 10_000, limit: 100, traffic: 'allowed' } as const
const names = { profile: 'by profile', leavingOut: 'by leaving out' } as const
const numbersInFlight = [1, 16, 64]
const replayed = {
  name: 'the client alone (the same calls, sent again)',
  role: 'reference',
  op: 'replay',
} as const

async function byProfile({ quick, report }: Bench, worker: Worker): Promise<void> {
  const layers = new Map<string, Record<string, number>>()
  for (const inFlight of numbersInFlight) {
    const rounds: Figures[] = []
    for (let round = 0; round < (quick ? 1 : 5); round += 1) {
      progress(`budget · profile · ${inFlight} in flight`)
      rounds.push(await worker.ask('profile', { inFlight, durationMs: quick ? 1_000 : 2_000 }))
    }
    const names = new Set(rounds.flatMap((round) => Object.keys(round)))
    // What a profile never met took nothing in it.
    const none = Object.fromEntries([...names].map((name) => [name, 0]))
    const found = medians(rounds.map((round) => ({ ...none, ...round })))
    const sum = Object.values(found).reduce((total, cpuUs) => total + cpuUs, 0)
    for (const [name, cpuUs] of Object.entries({ ...found, 'all layers': sum })) {
      layers.set(name, { ...layers.get(name), [figureAt(inFlight)]: cpuUs })
    }
  }
  const biggest = (figures: Figures): number => figures[figureAt(64)] ?? 0
  for (const [subject, figures] of [...layers].sort(([, a], [, b]) => biggest(b) - biggest(a))) {
    report.rows.push({
      ...{ suite: 'budget', case: `${names.profile}: Node CPU a check in each layer` },
      ...{ subject, role: 'ours', figures },
    })
  }
}

async function byLeavingOut(bench: Bench, variants: readonly Variant[]): Promise<void> {
  const { quick, report } = bench
  const absolute = new Map<string, Record<string, number>>()
  const saved = new Map<string, Record<string, number>>()
  const suite = 'budget'
  for (const inFlight of numbersInFlight) {
    const series = await interleave({
      contenders: variants,
      rounds: quick ? 3 : 9,
      roundMs: quick ? 200 : 400,
      measure: ({ name, worker, op }, durationMs) => {
        progress(`budget · by leaving out · ${inFlight} in flight · ${name}`)
        return worker.ask(op, { inFlight, durationMs })
      },
      onFailure: ({ name }, error) =>
        report.fail({ suite, case: `${names.leavingOut}, ${inFlight} in flight` }, name, error),
    })
    const whole = series.find(({ contender }) => contender.role === 'ours')
    for (const one of series) {
      const { name } = one.contender
      const { nodeCpuUs = Number.NaN } = medians(one.rounds)
      absolute.set(name, { ...absolute.get(name), [figureAt(inFlight)]: nodeCpuUs })
      if (whole && one !== whole) {
        const difference = medianDifference(whole, one)
        saved.set(name, { ...saved.get(name), [figureAt(inFlight)]: difference })
      }
    }
  }
  for (const [subject, figures] of absolute) {
    const place = { suite, case: `${names.leavingOut}: Node CPU a check` }
    report.rows.push({ ...place, subject, role: 'ours', figures })
  }
  for (const [subject, figures] of saved) {
    const place = { suite, case: `${names.leavingOut}: what that saves of Node CPU a check` }
    report.rows.push({ ...place, subject, role: 'ours', figures })
  }
}

function figureAt(inFlight: number): string {
  return `at${inFlight}`
}

/** Of the same rounds. */
function medianDifference(whole: Series, part: Series): number {
  const differences = whole.rounds.map(({ nodeCpuUs = Number.NaN }, round) => ({
    nodeCpuUs: nodeCpuUs - (part.rounds[round]?.nodeCpuUs ?? Number.NaN),
  }))
  return medians(differences).nodeCpuUs ?? Number.NaN
}
