import { memoryStore, type Store } from '@sluice/core'
import { type RedisStoreOptions, redisStore, type UserClient } from '@sluice/redis'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { createClient } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { createClient as createClient5 } from 'redis5'
import { vi } from 'vitest'

/** A store under test, with its clock in the test's hand. */
export interface OpenedStore {
  readonly store: Store
  /** Whether its keys are in Redis. */
  readonly prefix: string | undefined
  close(): Promise<void>
}

export interface StoreDriver {
  readonly name: string
  /** @param url of an empty Redis @param now the only clock */
  open(url: string, now: () => number): Promise<OpenedStore>
}

interface Connected {
  client: UserClient
  close(): Promise<void>
}

let opened = 0

function redisDriver(
  name: string,
  connect: (url: string) => Promise<Connected>,
  options: RedisStoreOptions = {},
): StoreDriver {
  return {
    name,
    async open(url, now) {
      const { client, close } = await connect(url)
      opened += 1
      const prefix = `test${opened}`
      // Every answer is Redis' own, so that it can be compared; denials that stay local have tests of their own.
      const store = redisStore(client, {
        prefix,
        clock: now,
        denialTtlMs: 0,
        heartbeatMs: 0,
        ...options,
      })
      return {
        store,
        prefix,
        close: () => store.close().then(close),
      }
    },
  }
}

export const memoryDriver: StoreDriver = {
  name: 'memory',
  async open(_url, now) {
    const clock = vi.spyOn(Date, 'now').mockImplementation(now)
    return {
      store: memoryStore(),
      prefix: undefined,
      close: async () => void clock.mockRestore(),
    }
  },
}

async function ioredis(url: string): Promise<Connected> {
  const client = new Redis(url)
  return { client, close: async () => client.disconnect() }
}

export const packedDriver: StoreDriver = redisDriver('Redis, ioredis 6', ioredis)
export const sortedSetDriver: StoreDriver = redisDriver('Redis, sorted sets', ioredis, {
  encoding: 'sorted-set',
})

/** Every store that must behave alike. */
export const storeDrivers: readonly StoreDriver[] = [
  memoryDriver,
  packedDriver,
  sortedSetDriver,
  redisDriver('Redis, ioredis 5', async (url) => {
    const client = new Redis5(url)
    return { client, close: async () => client.disconnect() }
  }),
  redisDriver('Redis, node-redis 6', async (url) => {
    const client = await createClient({ url }).connect()
    return { client, close: async () => client.destroy() }
  }),
  redisDriver('Redis, node-redis 5', async (url) => {
    const client = await createClient5({ url }).connect()
    return { client, close: async () => client.destroy() }
  }),
  redisDriver('Redis, node-redis 4', async (url) => {
    const client = await createClient4({ url }).connect()
    return { client, close: async () => client.disconnect() }
  }),
]
