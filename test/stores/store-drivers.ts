import { memoryStore, type Store } from '@sluice/core'
import { postgresMigration, postgresStore } from '@sluice/postgres'
import { type RedisStoreOptions, redisStore, type UserClient } from '@sluice/redis'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { afterAll, beforeAll, beforeEach, vi } from 'vitest'
import { mapStore } from '../../examples/store/map-store.ts'
import { redisByHttp } from '../redis/redis-by-http.ts'
import { GlideClient } from '../support/glide.ts'
import { startPostgres } from '../support/postgres-server.ts'
import { singleClients } from '../support/redis-clients.ts'
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
  /** Opens a store: an empty one, unless another of its name was there before. @param now the only clock */
  open(now: () => number, sharing?: SharingOptions): Promise<OpenedStore>
  stop(): Promise<void>
}

/** How a store is opened beside others of a test. */
export interface SharingOptions {
  /** Stores of one name share their counts: letters and digits. @default a new name */
  readonly name?: string
  /** @default 0, so that every answer is that of the server */
  readonly denialTtlMs?: number
}

/** Counts the requests that reach stores while some work is done. */
export class AskedStores {
  readonly #spies: { readonly mock: { readonly calls: readonly unknown[] } }[] = []

  watch({ store }: Pick<OpenedStore, 'store'>): Store {
    this.#spies.push(vi.spyOn(store, 'apply'))
    if (store.submit) this.#spies.push(vi.spyOn(store, 'submit'))
    return store
  }

  async while(work: () => Promise<unknown>): Promise<number> {
    const before = this.#asked()
    await work()
    return this.#asked() - before
  }

  #asked(): number {
    return this.#spies.reduce((sum, { mock }) => sum + mock.calls.length, 0)
  }
}

/** The names of the stores that are tried. */
const tried = new RegExp(process.env.STORES ?? '')

/** Starts what a driver needs before the tests of the enclosing block, and stops it after them. */
export function serverOf(driver: StoreDriver): Pick<StoreServer, 'open'> {
  let server: StoreServer
  if (!tried.test(driver.name)) beforeEach(({ skip }) => skip())
  else {
    beforeAll(async () => {
      server = await driver.start()
    })
    afterAll(() => server.stop())
  }
  return { open: (now, sharing) => server.open(now, sharing) }
}

interface Connected {
  client: UserClient
  close(): Promise<void>
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
        async open(now, { name, denialTtlMs = 0 } = {}) {
          const { client, close } = await connect(redis.url)
          opened += 1
          const prefix = name ?? `test${opened}`
          const own = { prefix, clock: now, denialTtlMs, heartbeatMs: 0 }
          const store = redisStore(client, { ...own, ...options })
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

/** Writes each state down as a text, and reads it for the next request, as Postgres does. */
export const mapDriver: StoreDriver = {
  name: 'Map of texts',
  start: async () => ({
    open: async (clock) => ({
      store: mapStore({ clock }),
      storedKeys: undefined,
      close: async () => undefined,
    }),
    stop: async () => undefined,
  }),
}

export const postgresDriver: StoreDriver = {
  name: 'Postgres',
  async start() {
    const postgres = await startPostgres()
    const pool = new Pool({ connectionString: postgres.url })
    return {
      async open(now, { name: table = 'sluice_counts', denialTtlMs = 0 } = {}) {
        await pool.query(postgresMigration({ table }))
        if (table === 'sluice_counts') await pool.query(`DELETE FROM ${table}`)
        const store = postgresStore(pool, { table, clock: now, denialTtlMs })
        // A state is written down with its end, which no step back of the clock moves.
        let latest = now()
        return {
          store,
          async storedKeys() {
            const { rows } = await pool.query<{ ends_at: string }>(
              `SELECT ends_at FROM ${table} WHERE state <> ''`,
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
  ...Object.entries(singleClients)
    .filter(([name]) => name !== 'ioredis 6')
    .map(([name, make]) =>
      redisDriver(`Redis, ${name}`, async (url) => {
        const { client, connect, close } = make(Number(new URL(url).port))
        await connect()
        return { client, close }
      }),
    ),
  redisDriver('Redis, Valkey GLIDE', async (url) => {
    const { hostname: host, port } = new URL(url)
    const client = await GlideClient.createClient({ addresses: [{ host, port: Number(port) }] })
    return { client, close: async () => client.close() }
  }),
  redisDriver('Redis over HTTP', async (url) => {
    const front = await redisHttpFront(url)
    return {
      client: redisByHttp(front.url, front.token),
      close: async () => front[Symbol.asyncDispose](),
    }
  }),
]

/** The stores whose denials are remembered: one is enough for `npm test`. */
export const denyingDrivers: readonly StoreDriver[] = [
  packedDriver,
  ...scaled([], [postgresDriver]),
]

/** Every store that must behave alike, each by one client in `npm test`. */
export const storeDrivers: readonly StoreDriver[] = [
  memoryDriver,
  postgresDriver,
  packedDriver,
  sortedSetDriver,
  ...scaled([], otherClients),
]
