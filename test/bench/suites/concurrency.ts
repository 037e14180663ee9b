import {
  type ConcurrencyContender,
  contenders,
  more,
} from '../concurrency/concurrency-contenders.ts'
import type { ConcurrencyProtocol, ConcurrencySetting } from '../concurrency/concurrency-worker.ts'
import type { Bench, Suite } from '../harness/bench.ts'
import { startBenchRedis } from '../harness/bench-redis.ts'
import { choosePinning } from '../harness/pinning.ts'
import { interleave, openEach } from '../harness/rounds.ts'
import { startWorkers, type Workers } from '../harness/workers.ts'

/** What a check costs at every number of requests in flight: Node and Redis on a core each, on the server's clock, beside the best peer. */
export const concurrency: Suite = {
  name: 'concurrency',
  async run(bench) {
    const redis = await startBenchRedis(bench)
    const pinning = choosePinning('Node', 'Redis')
    pinning.pin('Redis', redis.pid)
    bench.report.notes.push(`Suite concurrency: ${pinning.note}`)
    const chosen = fields(bench)
      .map((field) => ({ ...field, cases: field.cases.filter(({ name }) => bench.isChosen(name)) }))
      .filter(({ cases }) => cases.length > 0)
    const file = '../concurrency/concurrency-worker.ts'
    const contenders = [...new Set(chosen.flatMap((field) => field.contenders))]
    const workers: FieldWorkers = startWorkers(bench, file, { contenders })
    // Each is pinned once it has begun.
    await Promise.all(workers.all.map((worker) => worker.ask('close', undefined)))
    for (const { pid } of workers.all) pinning.pin('Node', pid)
    for (const field of chosen) {
      await redis.control.flushall()
      await runField(bench, { field, workers, port: redis.port })
    }
    workers.stop()
    await redis.stop()
  },
}

type FieldWorkers = Workers<ConcurrencyProtocol, ConcurrencyContender>

/** Contenders that are filled once, and then measured at several numbers in flight. */
interface Field {
  readonly setting: Omit<ConcurrencySetting, 'port'>
  readonly contenders: readonly ConcurrencyContender[]
  readonly cases: readonly { readonly name: string; readonly inFlight: number }[]
  readonly rounds: number
  readonly roundMs: number
}

const limit = 100
/** As long as Sluice believes a denial by default: in each round of a flood every key is asked of Redis once. */
const denialTtlMs = 1_000
const numbersInFlight = [1, 2, 4, 8, 16, 32, 64, 256]

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

async function runField(
  { report, quick }: Bench,
  { field, workers, port }: { field: Field; workers: FieldWorkers; port: number },
): Promise<void> {
  const suite = concurrency.name
  const { cases, contenders, setting, ...length } = field
  const opened = await openEach(report, {
    ...{ suite, name: `${cases[0]?.name} …`, contenders },
    async open(contender) {
      const worker = workers.of(contender)
      await worker.ask('open', { ...setting, port })
      // Compiles what it runs, so that the first case is not measured cold.
      if (setting.traffic === 'allowed') {
        await worker.ask('round', { inFlight: 64, durationMs: quick ? 200 : 1_000 })
      }
      return worker
    },
  })
  for (const { name, inFlight } of cases) {
    const series = await interleave(report, {
      ...{ suite, name, ...length },
      opened: new Map([...opened].filter(([{ minInFlight = 1 }]) => inFlight >= minInFlight)),
      measure: (worker, durationMs) => worker.ask('round', { inFlight, durationMs }),
    })
    report.add(suite, name, series)
  }
  for (const worker of opened.values()) await worker.ask('close', undefined)
}
