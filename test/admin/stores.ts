import { memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

export const storeKinds = ['memory', 'redis'] as const

/**
 * Starts one Redis for the tests of a suite.
 * @returns a function that makes an empty store, or with 'of another process' one beside it
 */
export function storesIn(
  kind: (typeof storeKinds)[number],
): (which?: 'of another process') => Promise<Store> {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    if (kind === 'memory') return
    server = await startRedis()
    client = new Redis(server.url)
  })
  afterAll(async () => {
    if (kind === 'memory') return
    client.disconnect()
    await server.stop()
  })
  return async (which) => {
    if (kind === 'memory') return memoryStore()
    if (which) {
      const other = client.duplicate()
      onTestFinished(() => other.disconnect())
      return redisStore(other)
    }
    await client.flushall()
    return redisStore(client)
  }
}
