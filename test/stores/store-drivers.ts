import { memoryStore, type Store } from '@sluice/core'
import { postgresMigration, postgresStore } from '@sluice/postgres'
import { type RedisStoreOptions, redisStore, type UserClient } from '@sluice/redis'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { Redis as Iovalkey } from 'iovalkey'
import { Pool } from 'pg'
import { createClient } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { createClient as createClient5 } from 'redis5'
import { afterAll, beforeAll, vi } from 'vitest'
import { redisByHttp } from '../redis/redis-by-http.ts'
import { GlideClient } from '../support/glide.ts'
import { startPostgres } from '../support/postgres-server.ts'
import { redisHttpFront } from '../support/redis-http-front.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { scaled } from '../support/scale.ts'

/** A store under test, with its clock in the test's hand. */
export interface OpenedStore {
  readonly store: Store
  /** The keys that are stored; `undefined` where they are in this process. */
  readonly storedKeys: (() => Promise<readonly StoredKey[]>) | undefined
  close(): Promise<void>
}

export interface StoredKey {
  /** The key as far as it says of which policy it is: `p~log-60000`. `undefined` where it is a digest. */
  readonly policyPart: string | undefined
  /** How much longer it is kept. */
  readonly ttlMs: number
}

export interface StoreDriver {
  readonly name: string
  /** Starts the server that the stores need. */
  start(): Promise<StoreServer>
}

export interface StoreServer {
  /** Opens an empty store. @param now the only clock */
  open(now: () => number): Promise<OpenedStore>
  stop(): Promise<void>
}

/** How a store is opened beside others of a test. */
export interface SharingOptions {
  /** Stores of one name share their counts: letters and digits. */
  readonly name: string
  readonly denialTtlMs?: number
}

/** A server on which several stores can share their counts. */
export class SharedServer {
  readonly #open: (now: () => number, options: Required<SharingOptions>) => Promise<Store>
  readonly #spies: { readonly mock: { readonly calls: readonly unknown[] } }[] = []
  readonly stop: () => Promise<void>

  constructor(
    open: (now: () => number, options: Required<SharingOptions>) => Promise<Store>,
    stop: () => Promise<void>,
  ) {
    this.#open = open
    this.stop = stop
  }

  async share(now: () => number, { name, denialTtlMs = 1_000 }: SharingOptions): Promise<Store> {
    const store = await this.#open(now, { name, denialTtlMs })
    this.#spies.push(vi.spyOn(store, 'apply'))
    if (store.submit) this.#spies.push(vi.spyOn(store, 'submit'))
    return store
  }

  /** Counts the requests that reach the stores while some work is done. */
  async countAsked(work: () => Promise<unknown>): Promise<number> {
    const before = this.#asked()
    await work()
    return this.#asked() - before
  }

  #asked(): number {
    return this.#spies.reduce((sum, { mock }) => sum + mock.calls.length, 0)
  }
}

/** Starts what a driver needs before the tests of the enclosing block, and stops it after them. */
export function serverOf(driver: StoreDriver): Pick<StoreServer, 'open'> {
  let server: StoreServer
  beforeAll(async () => {
    server = await driver.start()
  })
  afterAll(() => server.stop())
  return { open: (now) => server.open(now) }
}

interface Connected {
  client: UserClient
  close(): Promise<void>
}

interface DenyingDriver {
  readonly name: string
  start(): Promise<SharedServer>
}

/** The stores whose denials are remembered: one is enough for `npm test`. */
export const denyingDrivers: readonly DenyingDriver[] = [
  {
    name: 'Redis',
    async start() {
      const redis = await startRedis()
      const client = new Redis(redis.url)
      return new SharedServer(
        async (clock, { name: prefix, denialTtlMs }) =>
          redisStore(client, { prefix, clock, denialTtlMs, heartbeatMs: 0 }),
        async () => {
          client.disconnect()
          await redis.stop()
        },
      )
    },
  },
  ...scaled([], [{ name: 'Postgres', start: denyingPostgres }]),
]

async function denyingPostgres(): Promise<SharedServer> {
  const postgres = await startPostgres()
  const pool = new Pool({ connectionString: postgres.url })
  return new SharedServer(
    async (clock, { name: table, denialTtlMs }) => {
      await pool.query(postgresMigration({ table }))
      return postgresStore(pool, { table, clock, denialTtlMs })
    },
    async () => {
      await pool.end()
      await postgres.stop()
    },
  )
}

function redisDriver(
  name: string,
  connect: (url: string) => Promise<Connected>,
  options: RedisStoreOptions = {},
): StoreDriver {
  return {
    name,
    async start() {
      const redis = await startRedis()
      let opened = 0
      return {
        async open(now) {
          const { client, close } = await connect(redis.url)
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
            storedKeys: () => storedKeys(redis, prefix),
            close: () => store.close().then(close),
          }
        },
        stop: () => redis.stop(),
      }
    },
  }
}

async function storedKeys(redis: RedisServer, prefix: string): Promise<readonly StoredKey[]> {
  const found = await redis.cli('KEYS', `${prefix}:*`)
  const all = Array.isArray(found) ? found.map(String) : []
  // A refund that is sent again is known by the key of its sender, which counts nothing.
  const keys = all.filter((key) => !key.includes(':sender:'))
  return Promise.all(
    keys.map(async (key) => ({
      policyPart: key.split(':')[2],
      ttlMs: Number(await redis.cli('PTTL', key)),
    })),
  )
}

export const memoryDriver: StoreDriver = {
  name: 'memory',
  start: async () => ({
    async open(now) {
      const clock = vi.spyOn(Date, 'now').mockImplementation(now)
      return {
        store: memoryStore(),
        storedKeys: undefined,
        close: async () => void clock.mockRestore(),
      }
    },
    stop: async () => undefined,
  }),
}

export const postgresDriver: StoreDriver = {
  name: 'Postgres',
  async start() {
    const postgres = await startPostgres()
    const pool = new Pool({ connectionString: postgres.url })
    await pool.query(postgresMigration())
    return {
      async open(now) {
        await pool.query('DELETE FROM sluice_counts')
        const store = postgresStore(pool, { clock: now, denialTtlMs: 0 })
        // A state is written down with its end, which no step back of the clock moves.
        let latest = now()
        return {
          store,
          async storedKeys() {
            const { rows } = await pool.query<{ ends_at: string }>(
              "SELECT ends_at FROM sluice_counts WHERE state <> ''",
            )
            latest = Math.max(latest, now())
            return rows.map((row) => ({
              policyPart: undefined,
              // Stored ends are rounded up to a minute.
              ttlMs: Number(row.ends_at) - 60_000 - latest,
            }))
          },
          close: async () => store.close?.(),
        }
      },
      async stop() {
        await pool.end()
        await postgres.stop()
      },
    }
  },
}

/** How often random traces are tried; `npm run test:stores` multiplies those on stores beyond this process. */
export function runsOf(
  driver: StoreDriver,
  { memory, server }: { memory: number; server: number },
): number {
  const runs = driver === memoryDriver ? memory : server * Number(process.env.STORE_RUNS ?? 1)
  return Math.ceil(scaled(runs / 6, runs))
}

async function ioredis(url: string): Promise<Connected> {
  const client = new Redis(url)
  return { client, close: async () => client.disconnect() }
}

export const packedDriver: StoreDriver = redisDriver('Redis, ioredis 6', ioredis)
export const sortedSetDriver: StoreDriver = redisDriver('Redis, sorted sets', ioredis, {
  encoding: 'sorted-set',
})

/** The clients that reach the same Redis by other ways. */
const otherClients: readonly StoreDriver[] = [
  redisDriver('Redis, ioredis 5', async (url) => {
    const client = new Redis5(url)
    return { client, close: async () => client.disconnect() }
  }),
  redisDriver('Redis, iovalkey', async (url) => {
    const client = new Iovalkey(url)
    return { client, close: async () => client.disconnect() }
  }),
  redisDriver('Redis, Valkey GLIDE', async (url) => {
    const { hostname: host, port } = new URL(url)
    const client = await GlideClient.createClient({ addresses: [{ host, port: Number(port) }] })
    return { client, close: async () => client.close() }
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
  redisDriver('Redis over HTTP', async (url) => {
    const front = await redisHttpFront(url)
    return {
      client: redisByHttp(front.url, front.token),
      close: async () => front[Symbol.asyncDispose](),
    }
  }),
]

/** Every store that must behave alike, each by one client in `npm test`. */
export const storeDrivers: readonly StoreDriver[] = [
  memoryDriver,
  postgresDriver,
  packedDriver,
  sortedSetDriver,
  ...scaled([], otherClients),
]
