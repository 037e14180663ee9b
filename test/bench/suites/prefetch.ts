import { type Child, startChild } from '../../support/child.ts'
import type { Bench, Suite } from '../harness/bench.ts'
import { type BenchRedis, startBenchRedis } from '../harness/bench-redis.ts'
import type { Figures } from '../harness/figures.ts'
import { progress } from '../harness/progress.ts'
import { readRedis } from '../harness/redis-meter.ts'
import { type Contender, interleave, openEach } from '../harness/rounds.ts'
import type { PrefetchProtocol, RoundOutput, Subject } from '../prefetch/prefetch-worker.ts'

const suite = 'prefetch'
const minuteMs = 60_000

const contenders: readonly (Contender & { readonly subject: Subject })[] = [
  { name: 'Sluice with prefetch', role: 'ours', subject: 'with' },
  { name: 'Sluice with async', role: 'reference', subject: 'async' },
  { name: 'Sluice without', role: 'reference', subject: 'without' },
  { name: 'rate-limit-redis', role: 'peer', subject: 'rate-limit-redis' },
]

/** One key that several processes ask for, the first of them most. */
interface Case {
  readonly name: string
  readonly processes: number
  readonly limit: number
  readonly windowMs: number
  /** Requests a second of all processes. */
  readonly perSecond: number
}

/** How many requests of a hot key reach Redis, what they cost it, and how much of a full limit passes. */
export const prefetch: Suite = {
  name: suite,
  async run(bench) {
    for (const limit of [10_000, 1_000_000]) {
      for (const processes of [1, 2, 4]) {
        const perSecond = (0.8 * limit * 1_000) / minuteMs
        const name = `${limit.toLocaleString('en-US')} a minute, ${processes} processes, 0.8 of the limit`
        if (bench.isChosen(name))
          await below(bench, { name, processes, limit, windowMs: minuteMs, perSecond })
      }
    }
    for (const processes of [2, 4]) {
      const [limit, windowMs] = [10_000, 10_000]
      const name = `10,000 in 10 s, ${processes} processes, 3 times the limit`
      if (bench.isChosen(name))
        await full(bench, { name, processes, limit, windowMs, perSecond: 3_000 })
    }
  },
}

async function below(bench: Bench, one: Case): Promise<void> {
  const { quick, report } = bench
  const redis = await startBenchRedis(bench)
  const opened = await openEach(report, {
    ...{ suite, name: one.name, contenders },
    open: async ({ subject }) => ({
      subject,
      fleet: await startFleet(bench, redis, { ...one, subject }),
    }),
  })
  const series = await interleave(report, {
    ...{ suite, name: one.name, opened },
    ...(quick ? { rounds: 2, roundMs: 3_000 } : { rounds: 3, roundMs: 4_000 }),
    async measure({ subject, fleet }, durationMs) {
      // The key cools while the others have their turn, and the figures are of a hot one.
      if (subject === 'with') await measure(redis, fleet, { ...one, durationMs: 2_000 })
      return measure(redis, fleet, { ...one, durationMs })
    },
  })
  for (const { fleet } of opened.values()) for (const child of fleet) child.stop()
  await redis.stop()
  report.add(suite, one.name, series)
}

/** Fills a window first, and measures the next one. */
async function full(bench: Bench, one: Case): Promise<void> {
  const redis = await startBenchRedis(bench)
  const series = []
  for (const contender of contenders.filter(({ subject }) => subject !== 'rate-limit-redis')) {
    progress(`${suite} · ${one.name} · ${contender.name}`)
    const fleet = await startFleet(bench, redis, { ...one, subject: contender.subject })
    await measure(redis, fleet, { ...one, durationMs: 1.2 * one.windowMs })
    const figures = await measure(redis, fleet, { ...one, durationMs: one.windowMs })
    series.push({ contender, rounds: [figures] })
    for (const child of fleet) child.stop()
  }
  await redis.stop()
  bench.report.add(suite, one.name, series)
}

async function startFleet(
  { cleanups }: Bench,
  redis: BenchRedis,
  { processes, limit, windowMs, subject }: Case & { subject: Subject },
): Promise<readonly Child<PrefetchProtocol>[]> {
  const file = new URL('../prefetch/prefetch-worker.ts', import.meta.url)
  const fleet = Array.from({ length: processes }, () =>
    startChild<PrefetchProtocol>(file, { cleanups }),
  )
  const input = { subject, redisPort: redis.port, limit, windowMs, prefetchMs: windowMs / 20 }
  await Promise.all(fleet.map((child) => child.ask('open', input)))
  return fleet
}

async function measure(
  redis: BenchRedis,
  fleet: readonly Child<PrefetchProtocol>[],
  { limit, windowMs, perSecond, durationMs }: Case & { durationMs: number },
): Promise<Figures> {
  const before = await readRedis(redis.control)
  const weights = fleet.map((_, index) => 1 / (index + 1))
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const rounds: readonly RoundOutput[] = await Promise.all(
    fleet.map((child, index) =>
      child.ask('round', { durationMs, perSecond: (perSecond * (weights[index] ?? 0)) / total }),
    ),
  )
  const after = await readRedis(redis.control)
  const requests = rounds.reduce((sum, round) => sum + round.requests, 0)
  const allowed = rounds.reduce((sum, round) => sum + round.allowed, 0)
  return {
    redisCommands: (after.commands - before.commands) / requests,
    redisCpuUs: (after.cpuUs - before.cpuUs) / requests,
    callUs: Math.max(...rounds.map(({ p50Us }) => p50Us)),
    allowedShare: allowed / requests,
    usedShare: allowed / ((limit * durationMs) / windowMs),
  }
}
