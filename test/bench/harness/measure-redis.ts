import type { Redis } from 'ioredis'
import type { RedisSubject } from '../subjects/redis-subject.ts'
import { closedLoop } from './closed-loop.ts'
import { type Figures, quantile } from './figures.ts'
import { readRedis } from './redis-meter.ts'

export async function measureRedis(
  control: Redis,
  subject: RedisSubject,
  { nextKey, ...load }: { inFlight: number; durationMs: number; nextKey(): string },
): Promise<Figures & { readonly allowedShare: number }> {
  const redisBefore = await readRedis(control)
  const nodeBefore = process.cpuUsage()
  const { checks, allowed, elapsedMs, latenciesMs } = await closedLoop({
    ...load,
    check: () => subject.check(nextKey()),
  })
  const node = process.cpuUsage(nodeBefore)
  const redis = await readRedis(control)
  const nodeCpuUs = (node.user + node.system) / checks
  const redisCpuUs = (redis.cpuUs - redisBefore.cpuUs) / checks
  return {
    perSecond: (checks / elapsedMs) * 1000,
    nodeCpuUs,
    redisCpuUs,
    bothCpuUs: nodeCpuUs + redisCpuUs,
    redisCommands: (redis.commands - redisBefore.commands) / checks,
    allowedShare: allowed / checks,
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
  }
}
