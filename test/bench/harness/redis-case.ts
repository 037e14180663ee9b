import type { Redis } from 'ioredis'
import type { OpenRedisSubject, RedisSetting, RedisSubject } from '../subjects/redis-subject.ts'
import type { Bench } from './bench.ts'
import type { BenchRedis } from './bench-redis.ts'
import { checkTraffic } from './check-traffic.ts'
import { clientKeys, inTurn } from './client-keys.ts'
import type { Figures } from './figures.ts'
import { bytesPerIdentity, fillKeys } from './fill-keys.ts'
import { measureRedis } from './measure-redis.ts'
import { progress } from './progress.ts'
import { interleave, leaveOut } from './rounds.ts'
import { SimulatedClock } from './simulated-clock.ts'

/** Subjects that are measured side by side, on keys that are filled before. */
export interface RedisCase {
  readonly suite: string
  readonly name: string
  readonly traffic: RedisSetting['traffic']
  readonly keys: number
  readonly limit: number
  readonly inFlight: number
  readonly subjects: readonly OpenRedisSubject[]
  readonly rounds: number
  readonly roundMs: number
}

/** Logs are filled and emptied in this time; no key may expire while the subjects take turns. */
const windowMs = 3_600_000
/** How much faster time goes than the limit needs, so that a request that overtakes another is not refused for it. */
const slack = 1.05

/** A subject with its keys filled. */
interface Filled {
  readonly subject: RedisSubject
  readonly nextKey: () => string
  readonly bytes: Figures
}

export async function runRedisCase(bench: Bench, redis: BenchRedis, one: RedisCase): Promise<void> {
  const { suite, name, rounds, roundMs, inFlight } = one
  const { control } = redis
  const clients: Redis[] = []
  const connect = async (): Promise<Redis> => {
    const client = await redis.connect()
    clients.push(client)
    return client
  }
  await control.flushall()
  const keys = clientKeys(one.keys)
  const filled = new Map<RedisSubject, Filled>()
  for (const open of one.subjects) {
    progress(`${suite} · ${name} · filling subject ${filled.size + 1}`)
    const subject = await fill(bench, one, { open, connect, control, keys })
    if (subject) filled.set(subject.subject, subject)
  }

  const series = await interleave(bench.report, {
    ...{ suite, name, rounds, roundMs, contenders: [...filled.keys()] },
    measure: async (subject, durationMs) => {
      const { nextKey = inTurn(keys), bytes = {} } = filled.get(subject) ?? {}
      const figures = await measureRedis(control, subject, { inFlight, durationMs, nextKey })
      checkTraffic(one.traffic, figures.allowedShare)
      return { ...figures, ...bytes }
    },
  })
  bench.report.add(suite, name, series)
  for (const client of clients) client.disconnect()
}

interface Opening {
  readonly open: OpenRedisSubject
  readonly connect: () => Promise<Redis>
  readonly control: Redis
  readonly keys: readonly string[]
}

async function fill(
  { report }: Bench,
  { suite, name, traffic, limit }: RedisCase,
  { open, connect, control, keys }: Opening,
): Promise<Filled | undefined> {
  let subject: RedisSubject | undefined
  try {
    const clock = traffic === 'allowed' ? new SimulatedClock() : 'server'
    subject = await open({ connect, traffic, clock, limit, windowMs })
    await fillKeys(control, subject, keys)
    if (clock !== 'server') {
      clock.advance(windowMs / limit)
      clock.stepMs = (windowMs / (limit * keys.length)) * slack
    }
    const bytes = await bytesOf(subject, control, keys.length)
    return { subject, nextKey: inTurn(keys), bytes }
  } catch (error) {
    const who = subject?.name ?? 'a subject that could not be opened'
    leaveOut(report, { suite, case: name, subject: who, error })
    return undefined
  }
}

async function bytesOf(
  subject: RedisSubject,
  control: Redis,
  identities: number,
): Promise<Figures> {
  const bytesPerKey = await bytesPerIdentity(control, subject, identities)
  if (Number.isNaN(bytesPerKey)) return {}
  const { recordedUnits } = subject
  return recordedUnits
    ? { bytesPerKey, bytesPerUnit: bytesPerKey / recordedUnits }
    : { bytesPerKey }
}
