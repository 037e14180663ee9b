import { type Child, startChild } from '../../support/child.ts'
import {
  type ConcurrencyContender,
  contenders,
  more,
} from '../concurrency/concurrency-contenders.ts'
import type { ConcurrencyProtocol, ConcurrencySetting } from '../concurrency/concurrency-worker.ts'
import type { Bench, Suite } from '../harness/bench.ts'
import { startBenchRedis } from '../harness/bench-redis.ts'
import { choosePinning, type Pinning } from '../harness/pinning.ts'
import { progress } from '../harness/progress.ts'
import { interleave, leaveOut } from '../harness/rounds.ts'

/** What a check costs at every number of requests in flight: Node and Redis on a core each, on the server's clock, beside the best peer. */
export const concurrency: Suite = {
  name: 'concurrency',
  async run(bench) {
    const redis = await startBenchRedis(bench)
    const pinning = choosePinning('Node', 'Redis')
    pinning.pin('Redis', redis.pid)
    bench.report.notes.push(`Suite concurrency: ${pinning.note}`)
    const chosen = chosenFields(bench)
    const who = new Set(chosen.flatMap((field) => field.contenders))
    const workers = await startContenders(bench, pinning, [...who])
    for (const field of chosen) {
      await redis.control.flushall()
      await runField(bench, { field, workers, port: redis.port })
    }
    for (const worker of workers.values()) worker.stop()
    await redis.stop()
  },
}

type Worker = Child<ConcurrencyProtocol>
type Workers = ReadonlyMap<ConcurrencyContender, Worker>

/** Contenders that are filled once, and then measured at several numbers in flight. */
interface Field {
  readonly setting: Omit<ConcurrencySetting, 'port'>
  readonly contenders: readonly ConcurrencyContender[]
  readonly cases: readonly FieldCase[]
  readonly rounds: number
  readonly roundMs: number
}

interface FieldCase {
  readonly name: string
  readonly inFlight: number
  /** @default all */
  readonly includes?: (contender: ConcurrencyContender) => boolean
}

const limit = 100
/** As long as Sluice believes a denial by default: in each round of a flood every key is asked of Redis once. */
const denialTtlMs = 1_000
const numbersInFlight = [1, 2, 4, 8, 16, 32, 64, 256]
/** Two policies, which are measured where calls carry several checks. */
const isFor = (inFlight: number) => (one: ConcurrencyContender) =>
  one !== contenders.twoLogs || inFlight >= 16

function fields({ quick }: Bench): readonly Field[] {
  const { log, window, twoLogs, rateLimitRedis, flexible, flexibleBlocking } = contenders
  const length = quick ? { rounds: 3, roundMs: 120 } : { rounds: 5, roundMs: 250 }
  const flood = { rounds: quick ? 1 : 5, roundMs: denialTtlMs }
  const allowed = { keys: 10_000, limit, traffic: 'allowed' } as const
  const four = [log, window, rateLimitRedis, flexible]
  const flooded = [log, rateLimitRedis, flexible, flexibleBlocking]
  return [
    {
      ...length,
      setting: allowed,
      contenders: [...four, twoLogs],
      cases: (quick ? [1, 4, 16, 64, 256] : numbersInFlight).map((inFlight) => ({
        name: `${inFlight} in flight`,
        inFlight,
        includes: isFor(inFlight),
      })),
    },
    {
      ...length,
      setting: { ...allowed, keys: 100_000 },
      contenders: quick ? [log, rateLimitRedis] : four,
      cases: (quick ? [64] : [64, 256]).map((inFlight) => ({
        name: `${inFlight} in flight, 100,000 keys`,
        inFlight,
      })),
    },
    {
      ...length,
      setting: allowed,
      contenders: [log, window, twoLogs, ...more, rateLimitRedis],
      cases: [{ name: '64 in flight, every algorithm', inFlight: 64 }],
    },
    {
      ...length,
      // What is compared differs by little.
      rounds: quick ? 3 : 11,
      setting: allowed,
      contenders: [log, contenders.withoutResilience],
      cases: (quick ? [64] : [1, 16, 64, 256]).map((inFlight) => ({
        name: `${inFlight} in flight, with and without resilience`,
        inFlight,
      })),
    },
    {
      ...length,
      setting: allowed,
      contenders: [log, contenders.iovalkey, contenders.nodeRedis, contenders.glide],
      cases: (quick ? [64] : [1, 16, 64, 256]).map((inFlight) => ({
        name: `${inFlight} in flight, by client`,
        inFlight,
      })),
    },
    ...[1, 10_000].map((keys) => ({
      ...flood,
      setting: { ...allowed, keys, traffic: 'denied' as const },
      contenders: flooded,
      cases: [
        { name: `refused flood, ${keys === 1 ? 'one hot key' : '10,000 keys'}`, inFlight: 256 },
      ],
    })),
  ]
}

function chosenFields(bench: Bench): readonly Field[] {
  return fields(bench)
    .map((field) => ({ ...field, cases: field.cases.filter(({ name }) => bench.isChosen(name)) }))
    .filter(({ cases }) => cases.length > 0)
}

/** A process for each, pinned to the core of Node once it has begun. */
async function startContenders(
  { cleanups }: Bench,
  pinning: Pinning<'Node'>,
  list: readonly ConcurrencyContender[],
): Promise<Workers> {
  const file = new URL('../concurrency/concurrency-worker.ts', import.meta.url)
  const workers = new Map(
    list.map((contender) => [
      contender,
      startChild<ConcurrencyProtocol>(file, { cleanups, args: [contender.name] }),
    ]),
  )
  await Promise.all([...workers.values()].map((worker) => worker.ask('close', undefined)))
  for (const { pid } of workers.values()) pinning.pin('Node', pid)
  return workers
}

interface FieldRun {
  readonly field: Field
  readonly workers: Workers
  readonly port: number
}

async function runField(bench: Bench, { field, workers, port }: FieldRun): Promise<void> {
  const { report, quick } = bench
  const suite = concurrency.name
  const [first] = field.cases
  const open: ConcurrencyContender[] = []
  for (const contender of field.contenders) {
    progress(`${suite} · ${first?.name} … · filling ${contender.name}`)
    try {
      const worker = workerOf(workers, contender)
      await worker.ask('open', { ...field.setting, port })
      // Compiles what it runs, so that the first case is not measured cold.
      if (field.setting.traffic === 'allowed') {
        await worker.ask('round', { inFlight: 64, durationMs: quick ? 200 : 1_000 })
      }
      open.push(contender)
    } catch (error) {
      leaveOut(report, { suite, case: `${first?.name} …`, subject: contender.name, error })
    }
  }
  for (const { name, inFlight, includes = () => true } of field.cases) {
    const series = await interleave(report, {
      ...{ suite, name, rounds: field.rounds, roundMs: field.roundMs },
      contenders: open.filter(includes),
      measure: (contender, durationMs) =>
        workerOf(workers, contender).ask('round', { inFlight, durationMs }),
    })
    report.add(suite, name, series)
  }
  for (const contender of open) await workerOf(workers, contender).ask('close', undefined)
}

function workerOf(workers: Workers, contender: ConcurrencyContender): Worker {
  const worker = workers.get(contender)
  if (!worker) throw new Error(`no process was started for '${contender.name}'`)
  return worker
}
