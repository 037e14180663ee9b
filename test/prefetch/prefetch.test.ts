import { createLimiter, type Decision, type Limiter } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

describe('a policy with prefetch', () => {
  let redis: RedisServer
  let client: Redis
  let opened = 0

  beforeAll(async () => {
    redis = await startRedis()
    client = new Redis(redis.url)
  })

  afterAll(async () => {
    client.disconnect()
    await redis.stop()
  })

  function open(policies: object[]): { limiter: Limiter; asked: () => number } {
    opened += 1
    let asked = 0
    const limiter = createLimiter({
      policies: policies as never,
      store: redisStore(client, { prefix: `prefetch${opened}`, heartbeatMs: 0 }),
      deadlineMs: 5_000,
      onStoreCall: ({ requests }) => {
        asked += requests
      },
    })
    return { limiter, asked: () => asked }
  }

  /** Makes a key hot, until a grant is spent. */
  async function heat(limiter: Limiter, key = 'hot'): Promise<void> {
    for (let i = 0; i < 5_000 && limiter.storeHealth().grants.spent === 0; i += 1) {
      await limiter.consume(key)
    }
    expect(limiter.storeHealth().grants.spent).toBeGreaterThan(0)
  }

  it('spends a grant without asking', async () => {
    const { limiter, asked } = open([{ name: 'p', limit: 10_000, window: '1m', prefetch: '6s' }])
    await heat(limiter)
    const before = asked()
    const decisions: Decision[] = []
    for (let i = 0; i < 20; i += 1) decisions.push(await limiter.consume('hot'))
    expect(decisions.every(({ allowed }) => allowed)).toBe(true)
    expect(asked() - before).toBeLessThan(10)
    await limiter.close()
  })

  it('admits the limit and no more', async () => {
    const { limiter } = open([{ name: 'p', limit: 500, window: '1m', prefetch: '1s' }])
    let allowed = 0
    for (let i = 0; i < 800; i += 1) if ((await limiter.consume('hot')).allowed) allowed += 1
    expect(limiter.storeHealth().grants.spent).toBeGreaterThan(100)
    expect(allowed).toBe(500)
    await limiter.close()
  })
})
