import { contenders, prefixOf } from '../concurrency/concurrency-contenders.ts'
import type { Bench, Suite } from '../harness/bench.ts'
import { type BenchRedis, startBenchRedis } from '../harness/bench-redis.ts'
import { clientKeys, inTurn } from '../harness/client-keys.ts'
import { checkTraffic, type Figures } from '../harness/figures.ts'
import { bytesPerIdentity, fillKeys } from '../harness/fill-keys.ts'
import { measureRedis } from '../harness/measure-redis.ts'
import { type Contender, interleave, openEach } from '../harness/rounds.ts'
import { SimulatedClock } from '../harness/simulated-clock.ts'
import type { OpenRedisSubject, RedisSubject } from '../subjects/redis-subject.ts'
import { sortedSet } from '../subjects/sorted-set.ts'

const suite = 'growth'
const subjects: readonly (Contender & { readonly open: OpenRedisSubject })[] = [
  ...[contenders.log, contenders.rateLimitRedis],
  { name: 'sorted set', role: 'peer', open: sortedSet },
]
const inFlight = 64
/** Logs are filled and emptied in this time; no key may expire while the subjects take turns. */
const windowMs = 3_600_000
/** How much faster time goes than the limit needs, so that a request that overtakes another is not refused for it. */
const slack = 1.05

/** What becomes of the cost of a check, and of its bytes, as limits grow. */
export const growth: Suite = {
  name: suite,
  async run(bench) {
    const redis = await startBenchRedis(bench)
    for (const limit of [10, 100, 1_000, 10_000, ...(bench.quick ? [] : [100_000])]) {
      const name = `limit ${limit.toLocaleString('en-US')}`
      if (bench.isChosen(name)) await runLimit(bench, redis, { name, limit })
    }
    await redis.stop()
  },
}

async function runLimit(
  { report, quick }: Bench,
  redis: BenchRedis,
  { name, limit }: { name: string; limit: number },
): Promise<void> {
  const { control } = redis
  await control.flushall()
  // As many as are in flight at least, so that no request finds the key that one of the same call has just read.
  const keys = clientKeys(Math.max(inFlight, Math.min(1_000, 100_000 / limit)))
  const opened = await openEach(report, {
    ...{ suite, name, contenders: subjects },
    async open(contender) {
      const subject = await filled(contender, redis, { limit, keys })
      return { subject, nextKey: inTurn(keys), bytes: await bytesOf(subject, redis, keys.length) }
    },
  })
  const series = await interleave(report, {
    ...(quick ? { rounds: 3, roundMs: 100 } : { rounds: 5, roundMs: 200 }),
    ...{ suite, name, opened },
    async measure({ subject, nextKey, bytes }, durationMs) {
      const figures = await measureRedis(control, subject, { inFlight, durationMs, nextKey })
      checkTraffic('allowed', figures.allowedShare)
      return { ...figures, ...bytes }
    },
  })
  report.add(suite, name, series)
}

/** A subject whose keys are full, on a clock by which every request finds one unit that has just expired. */
async function filled(
  contender: (typeof subjects)[number],
  { connect, control }: BenchRedis,
  { limit, keys }: { limit: number; keys: readonly string[] },
): Promise<RedisSubject> {
  const clock = new SimulatedClock()
  const prefix = prefixOf(contender)
  const setting = { connect, prefix, traffic: 'allowed', clock, limit, windowMs } as const
  const subject = await contender.open(setting)
  await fillKeys(control, subject, keys)
  clock.advance(windowMs / limit)
  clock.stepMs = (windowMs / (limit * keys.length)) * slack
  return subject
}

async function bytesOf(
  subject: RedisSubject,
  { control }: BenchRedis,
  identities: number,
): Promise<Figures> {
  const bytesPerKey = await bytesPerIdentity(control, subject, identities)
  if (Number.isNaN(bytesPerKey)) return {}
  const { recordedUnits } = subject
  return recordedUnits
    ? { bytesPerKey, bytesPerUnit: bytesPerKey / recordedUnits }
    : { bytesPerKey }
}
