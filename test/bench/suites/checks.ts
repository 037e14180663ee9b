import type { Suite } from '../harness/bench.ts'
import { startBenchRedis } from '../harness/bench-redis.ts'
import { runRedisCase } from '../harness/redis-case.ts'
import { checkCases } from './check-cases.ts'

/** Checks through Redis: what one costs in Node and in Redis, and how many pass a second. */
export const checks: Suite = {
  name: 'checks',
  async run(bench) {
    const redis = await startBenchRedis(bench)
    for (const one of checkCases(bench)) await runRedisCase(bench, redis, one)
    await redis.stop()
  },
}
