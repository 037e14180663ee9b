import { type DecisionEvent, type Limiter, memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

let redis: RedisServer
let client: Redis
let store: Store
let opened = 0

beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.url)
})

afterAll(async () => {
  client.disconnect()
  await redis.stop()
})

beforeEach(() => {
  opened += 1
  store = newStore()
})

afterEach(() => store.close?.())

function newStore(): Store {
  return redisStore(client, { prefix: `async${opened}`, heartbeatMs: 0 })
}

const quick = { name: 'a', limit: 100, window: '10m', async: { maxUncounted: 20 } } as const

function limiterWith(options: SomeOptions = {}): Limiter {
  return patientLimiter({ store, policies: [quick], ...options })
}

/** Waits until the store counts all units. */
async function counted(limiter: Limiter): Promise<void> {
  await until('the store counts all units', () => limiter.storeHealth().uncountedUnits === 0)
}

/** The units that count at the store for a key. */
async function usedAtStore(key = 'k'): Promise<number> {
  const other = patientLimiter({
    store,
    policies: [{ name: quick.name, limit: quick.limit, window: quick.window }],
  })
  return quick.limit - ((await other.peek(key)).outcomes[0]?.remaining ?? 0)
}

describe('a policy with async', () => {
  it('asks the store for the first request of a key, and answers the next ones at once', async () => {
    const events: DecisionEvent[] = []
    const limiter = limiterWith({ onDecision: (event) => void events.push(event) })
    for (let i = 0; i < 5; i += 1) expect((await limiter.consume('k')).allowed).toBe(true)
    expect(events.map(({ answeredBy }) => answeredBy)).toEqual([
      'redis',
      ...Array.from({ length: 4 }, () => 'async'),
    ])
    await counted(limiter)
    expect(await usedAtStore()).toBe(5)
  })
})
void memoryStore
void vi
