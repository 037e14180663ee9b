import type { Bench, Suite } from '../harness/bench.ts'
import { startBenchRedis } from '../harness/bench-redis.ts'
import { type RedisCase, runRedisCase } from '../harness/redis-case.ts'
import { algorithmNames } from '../subjects/algorithm-policy.ts'
import { rateLimitRedis } from '../subjects/rate-limit-redis.ts'
import {
  rateLimiterFlexibleBlocking,
  rateLimiterFlexibleRedis,
} from '../subjects/rate-limiter-flexible-redis.ts'
import { sameScript } from '../subjects/same-script.ts'
import { sluiceRedis } from '../subjects/sluice-redis.ts'
import { sortedSet } from '../subjects/sorted-set.ts'

/** Checks through Redis: what one costs in Node and in Redis, and how many pass a second. */
export const checks: Suite = {
  name: 'checks',
  async run(bench) {
    const redis = await startBenchRedis(bench)
    for (const one of checkCases(bench)) await runRedisCase(bench, redis, one)
    await redis.stop()
  },
}

const peers = [rateLimiterFlexibleRedis, rateLimitRedis, sortedSet]
const slidingLog = sluiceRedis({ algorithm: 'sliding-log' })
const severalPolicies = [2, 4].map((policies) =>
  sluiceRedis({ algorithm: 'sliding-log', policies }),
)
const otherAlgorithms = algorithmNames
  .filter((algorithm) => algorithm !== 'sliding-log')
  .map((algorithm) => sluiceRedis({ algorithm }))
/** What a flood costs that is asked of Redis to the last request. */
const slidingLogAsking = sluiceRedis({ algorithm: 'sliding-log', rememberDenials: false })
const alone = [slidingLog, sameScript, ...peers]
const everybody = [slidingLog, ...severalPolicies, ...otherAlgorithms, ...peers]

/** As long as Sluice believes a denial by default: in each round of a flood every key is asked of Redis once. */
const denialTtlMs = 1_000

function checkCases({ quick }: Pick<Bench, 'quick'>): readonly RedisCase[] {
  const length = quick ? { rounds: 3, roundMs: 120 } : { rounds: 5, roundMs: 250 }
  const floodLength = { rounds: quick ? 2 : 3, roundMs: denialTtlMs }
  const many = { suite: 'checks', keys: 10_000, limit: 100, ...length }
  const hot = { suite: 'checks', keys: 1, limit: quick ? 2_000 : 10_000, ...length }
  const few = [slidingLog, ...severalPolicies.slice(0, 1), ...peers]
  const flooded = [...few, slidingLogAsking, rateLimiterFlexibleBlocking]
  const cases = [
    { ...many, name: 'allowed, 10,000 keys', traffic: 'allowed', subjects: everybody },
    { ...many, ...floodLength, name: 'denied, 10,000 keys', traffic: 'denied', subjects: flooded },
    { ...hot, name: 'allowed, one hot key', traffic: 'allowed', subjects: few },
    { ...hot, name: 'denied, one hot key', traffic: 'denied', subjects: flooded },
  ] as const
  return [
    ...cases.map((one) => ({ ...one, name: `${one.name}, 256 in flight`, inFlight: 256 })),
    {
      ...{ ...many, name: 'latency, 10,000 keys, 1 in flight', traffic: 'half' },
      ...{ inFlight: 1, subjects: alone },
    },
  ]
}
