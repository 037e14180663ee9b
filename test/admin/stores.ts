import { memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import type { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { it } from '../support/redis-test.ts'

export const storeKinds = ['memory', 'redis'] as const

/** Has one Redis for the tests of a file. @returns what makes an empty store, or with 'of another process' one beside it */
export function storesIn(kind: (typeof storeKinds)[number]) {
  let client: Redis
  if (kind === 'redis') {
    it.beforeAll(({ client: opened }) => {
      client = opened
    })
  }
  return async (which?: 'of another process'): Promise<Store> => {
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
