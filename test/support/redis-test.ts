import { Cluster, Redis } from 'ioredis'
import { afterAll, test } from 'vitest'
import { startRedisCluster } from './redis-cluster.ts'
import { type RedisServer, startRedis } from './redis-server.ts'

/**
 * `it` for tests that need Redis. The first test or hook of a file that asks for `redis` starts a server, and for `client` connects to it; in
 * the same way `cluster` and `clusterClient`. They end with the file. A hook tells helpers of them: `it.beforeAll(({ client }) => …)`. A file whose tests replace clocks or `listen`
 * asks for them in such a hook, so that the server starts before.
 */
export const it = test
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern what a fixture needs.
  .extend('redis', { scope: 'file' }, async ({}, { onCleanup }) => {
    const server = await startRedis()
    onCleanup(() => server.stop())
    return server
  })
  .extend('client', { scope: 'file' }, async ({ redis }, { onCleanup }) => {
    const client = new Redis(redis.url)
    onCleanup(() => client.disconnect())
    return client
  })
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern what a fixture needs.
  .extend('cluster', { scope: 'file' }, async ({}, { onCleanup }) => {
    const cluster = await startRedisCluster()
    onCleanup(() => cluster.stop())
    return cluster
  })
  .extend('clusterClient', { scope: 'file' }, async ({ cluster }, { onCleanup }) => {
    const client = new Cluster(cluster.ports.map((port) => ({ host: '127.0.0.1', port })))
    onCleanup(() => client.disconnect())
    return client
  })

/** Starts a Redis for a file, and a client of it, which end with the file: for what stands around its tests too. */
export async function redisOfFile(): Promise<{ redis: RedisServer; client: Redis }> {
  const redis = await startRedis()
  const client = new Redis(redis.url)
  afterAll(async () => {
    client.disconnect()
    await redis.stop()
  })
  return { redis, client }
}

/** Counts the calls of a command, also those by scripts, since the statistics were reset. */
export async function callsOf({ cli }: Pick<RedisServer, 'cli'>, command: string): Promise<number> {
  const stats = String(await cli('INFO', 'commandstats'))
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}
