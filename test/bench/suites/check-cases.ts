import type { Bench } from '../harness/bench.ts'
import type { RedisCase } from '../harness/redis-case.ts'
import { algorithmNames } from '../subjects/algorithm-policy.ts'
import { rateLimitRedis } from '../subjects/rate-limit-redis.ts'
import {
  rateLimiterFlexibleBlocking,
  rateLimiterFlexibleRedis,
} from '../subjects/rate-limiter-flexible-redis.ts'
import { sameScript } from '../subjects/same-script.ts'
import { sluiceRedis } from '../subjects/sluice-redis.ts'
import { sortedSet } from '../subjects/sorted-set.ts'

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
const most = [slidingLog, ...severalPolicies, ...peers]
const alone = [slidingLog, sameScript, ...peers]
const everybody = [slidingLog, ...severalPolicies, ...otherAlgorithms, ...peers]

const headCase = {
  allowed: manyKeys('allowed', 256),
  denied: manyKeys('denied', 256),
  latency: 'latency, 10,000 keys, 1 in flight',
} as const

/** As long as Sluice believes a denial by default: in each round of a flood every key is asked of Redis once. */
const denialTtlMs = 1_000

export function checkCases({ quick }: Pick<Bench, 'quick'>): readonly RedisCase[] {
  const length = quick ? { rounds: 3, roundMs: 120 } : { rounds: 5, roundMs: 250 }
  const floodLength = { rounds: quick ? 2 : 3, roundMs: denialTtlMs }
  const many = { suite: 'checks', keys: 10_000, limit: 100, ...length }
  const hot = { suite: 'checks', keys: 1, limit: quick ? 2_000 : 10_000, ...length }
  const few = [slidingLog, ...severalPolicies.slice(0, 1), ...peers]
  const flooded = [...few, slidingLogAsking, rateLimiterFlexibleBlocking]
  const whole = quick
    ? [
        slidingLog,
        ...severalPolicies.slice(0, 1),
        rateLimiterFlexibleRedis,
        rateLimitRedis,
        rateLimiterFlexibleBlocking,
      ]
    : [...everybody, slidingLogAsking, rateLimiterFlexibleBlocking]
  const cases: RedisCase[] = [
    { ...many, name: headCase.allowed, traffic: 'allowed', inFlight: 256, subjects: everybody },
    { ...many, name: headCase.latency, traffic: 'half', inFlight: 1, subjects: alone },
    {
      ...many,
      ...floodLength,
      name: headCase.denied,
      traffic: 'denied',
      inFlight: 256,
      subjects: whole,
    },
    { ...hot, name: hotKey('allowed', 256), traffic: 'allowed', inFlight: 256, subjects: few },
    { ...hot, name: hotKey('denied', 256), traffic: 'denied', inFlight: 256, subjects: flooded },
  ]
  const fewer = quick
    ? []
    : [1, 64].flatMap((inFlight): RedisCase[] => [
        {
          ...many,
          name: manyKeys('allowed', inFlight),
          traffic: 'allowed',
          inFlight,
          subjects: most,
        },
        {
          ...many,
          ...floodLength,
          name: manyKeys('denied', inFlight),
          traffic: 'denied',
          inFlight,
          subjects: few,
        },
        { ...hot, name: hotKey('allowed', inFlight), traffic: 'allowed', inFlight, subjects: few },
        { ...hot, name: hotKey('denied', inFlight), traffic: 'denied', inFlight, subjects: few },
      ])
  return [...cases, ...fewer]
}

function manyKeys(traffic: string, inFlight: number): string {
  return `${traffic}, 10,000 keys, ${inFlight} in flight`
}

function hotKey(traffic: string, inFlight: number): string {
  return `${traffic}, one hot key, ${inFlight} in flight`
}
