import { type RegionalStoreOptions, regionalStore } from '@sluice/core'
import { type RedisStoreOptions, redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { startTcpProxy } from '../faults/tcp-proxy.ts'
import { startRedis } from '../support/redis-server.ts'

export type RegionName = 'eu' | 'us'

export type ThreeServers = Awaited<ReturnType<typeof startThreeServers>>

interface OpenOptions extends Partial<RegionalStoreOptions> {
  readonly redis?: RedisStoreOptions
}

/** Starts the Redis of two regions, and that of all regions. */
export async function startThreeServers() {
  const [eu, us, global] = await Promise.all([startRedis(), startRedis(), startRedis()])
  const ends: (() => unknown)[] = []
  const connect = (port: number): Redis => {
    const client = new Redis(port, '127.0.0.1', {
      maxRetriesPerRequest: 0,
      retryStrategy: () => 20,
    })
    client.on('error', () => undefined)
    ends.push(() => client.disconnect())
    return client
  }
  return {
    eu,
    us,
    global,
    /** Opens the store of a process of a region, with connections of its own: `toGlobal` is its way to the global Redis. */
    async open(region: RegionName, { redis = {}, ...options }: OpenOptions = {}) {
      const toGlobal = await startTcpProxy(global.port)
      const settings = { heartbeatMs: 0, ...redis }
      const store = regionalStore({
        region,
        local: redisStore(connect({ eu, us }[region].port), settings),
        global: redisStore(connect(toGlobal.port), settings),
        shares: { eu: 0.4, us: 0.4 },
        // A machine that stands still must not fail a test.
        globalDeadlineMs: 5_000,
        ...options,
      })
      ends.push(toGlobal.close, store.close)
      return { store, toGlobal }
    },
    async [Symbol.asyncDispose]() {
      for (const end of ends.reverse()) await end()
      await Promise.all([eu, us, global].map((server) => server.stop()))
    },
  }
}
