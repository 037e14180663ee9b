import type { Suite } from '../harness/bench.ts'
import { startBenchRedis } from '../harness/bench-redis.ts'
import { runRedisCase } from '../harness/redis-case.ts'
import { rateLimitRedis } from '../subjects/rate-limit-redis.ts'
import { sluiceRedis } from '../subjects/sluice-redis.ts'
import { sortedSet } from '../subjects/sorted-set.ts'

const inFlight = 64

/** What becomes of the cost of a check, and of its bytes, as limits grow. */
export const growth: Suite = {
  name: 'growth',
  async run(bench) {
    const redis = await startBenchRedis(bench)
    for (const limit of bench.quick ? growthLimits.slice(0, -1) : growthLimits) {
      await runRedisCase(bench, redis, {
        ...{ suite: 'growth', name: limitCase(limit), traffic: 'allowed', limit, inFlight },
        ...(bench.quick ? { rounds: 3, roundMs: 100 } : { rounds: 5, roundMs: 200 }),
        // As many as are in flight at least, so that no request finds the key that one of the same call has just read.
        keys: Math.max(inFlight, Math.min(1_000, 100_000 / limit)),
        subjects: [sluiceRedis({ algorithm: 'sliding-log' }), rateLimitRedis, sortedSet],
      })
    }
    await redis.stop()
  },
}

/** The limits that the plots are drawn over. */
export const growthLimits: readonly number[] = [10, 100, 1_000, 10_000, 100_000]

export function limitCase(limit: number): string {
  return `limit ${limit.toLocaleString('en-US')}`
}
