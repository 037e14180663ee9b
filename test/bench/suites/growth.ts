import type { Bench, Suite } from '../harness/bench.ts'
import { startBenchRedis } from '../harness/bench-redis.ts'
import type { RedisCase } from '../harness/redis-case.ts'
import { runRedisCase } from '../harness/redis-case.ts'
import { memoryContenders } from '../memory/memory-contenders.ts'
import { rateLimitRedis } from '../subjects/rate-limit-redis.ts'
import { sluiceRedis } from '../subjects/sluice-redis.ts'
import { sortedSet } from '../subjects/sorted-set.ts'
import { runMemoryCase, startWorkers } from './memory.ts'

/** What becomes of the cost of a check, and of its bytes, as limits, policies and keys grow. */
export const growth: Suite = {
  name: 'growth',
  async run(bench) {
    const redis = await startBenchRedis(bench)
    for (const one of redisCases(bench)) await runRedisCase(bench, redis, one)
    await redis.stop()

    const includes = ({ role, name }: { role: string; name: string }): boolean =>
      role === 'peer' || name === 'sluice sliding-log, decide()'
    const workers = startWorkers(bench, memoryContenders.filter(includes))
    // A million keys in memory are a case of the suite 'memory'.
    for (const keys of keyCounts(bench).filter((count) => count < 1_000_000)) {
      await runMemoryCase(bench, workers, {
        suite: 'growth',
        name: `${keys.toLocaleString('en-US')} keys, memory`,
        setting: { keys, limit: 10, windowMs: 3_600_000, traffic: 'allowed' },
        rounds: bench.quick ? 3 : 5,
      })
    }
    for (const worker of workers.values()) worker.stop()
  },
}

const slidingLog = sluiceRedis({ algorithm: 'sliding-log' })

function keyCounts({ quick }: Bench): readonly number[] {
  return quick ? [1_000, 10_000] : [1_000, 10_000, 100_000, 1_000_000]
}

/** The limits that the plots are drawn over. */
export function growthLimits({ quick }: Pick<Bench, 'quick'>): readonly number[] {
  return quick ? [10, 100, 1_000, 10_000] : [10, 100, 1_000, 10_000, 100_000]
}

export function limitCase(limit: number): string {
  return `limit ${limit.toLocaleString('en-US')}`
}

function redisCases(bench: Bench): readonly RedisCase[] {
  const common = {
    suite: 'growth',
    traffic: 'allowed',
    inFlight: 64,
    rounds: bench.quick ? 3 : 5,
    roundMs: bench.quick ? 100 : 200,
  } as const
  return [
    ...growthLimits(bench).map((limit) => ({
      ...common,
      name: limitCase(limit),
      limit,
      // As many as are in flight at least, so that no request finds the key that one of the same call has just read.
      keys: Math.max(common.inFlight, Math.min(1_000, 100_000 / limit)),
      subjects: [slidingLog, rateLimitRedis, sortedSet],
    })),
    {
      ...common,
      name: '1 to 8 policies',
      limit: 100,
      keys: 1_000,
      subjects: [1, 2, 4, 8].map((policies) => sluiceRedis({ algorithm: 'sliding-log', policies })),
    },
    ...keyCounts(bench).map((keys) => ({
      ...common,
      name: `${keys.toLocaleString('en-US')} keys, Redis`,
      limit: 10,
      keys,
      subjects: [slidingLog, sortedSet],
    })),
  ]
}
