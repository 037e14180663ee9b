import { tiers } from '@sluice/http'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { exchange, guardOf } from '../exchange.ts'

let server: RedisServer
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

it.each(['sliding-log', 'sliding-counter', 'fixed-window', 'token-bucket'] as const)(
  'a client that changes its tier keeps what it has taken in Redis, by a %s',
  async (algorithm) => {
    let plan = 'free'
    const guard = guardOf({
      name: `tiers-${algorithm}`,
      window: '1h',
      algorithm,
      headroom: 0.1,
      store: redisStore(redis),
      failureMode: 'closed',
      // A busy machine is no failure.
      deadlineMs: 60_000,
      limit: tiers({ free: 10, paid: 20, default: 1 }, () => plan),
    })
    async function ask(count: number): Promise<number[]> {
      const remaining = []
      for (let i = 0; i < count; i += 1) {
        const { decision } = await guard.check(exchange())
        const [outcome] = decision?.outcomes ?? []
        remaining.push(outcome?.allowed ? (outcome.remaining ?? Number.NaN) : -1)
      }
      return remaining
    }

    expect(await ask(10)).toEqual([8, 7, 6, 5, 4, 3, 2, 1, 0, -1])
    plan = 'paid'
    expect((await ask(1)).every((left) => left >= 0)).toBe(true)
    plan = 'free'
    expect(await ask(1)).toEqual([-1])
  },
)
