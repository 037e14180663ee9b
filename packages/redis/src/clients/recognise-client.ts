import { SluiceError, show } from '@sluice/core'
import { type IoredisLike, ioredisClient, isIoredis } from './ioredis.ts'
import { isNodeRedis, type NodeRedisLike, nodeRedisClient } from './node-redis.ts'
import type { RedisClient } from './redis-client.ts'

/** A client as users construct it: ioredis 5 or 6, or node-redis 4, 5 or 6. */
export type UserClient = IoredisLike | NodeRedisLike

/**
 * Tells by what it can do which client this is.
 * @throws SluiceError when it is none that Sluice knows
 */
export function recogniseClient(client: unknown): RedisClient {
  if (typeof client === 'object' && client !== null) {
    if (isCluster(client))
      throw refused('a Cluster client; only a single node or Sentinel is supported so far')
    if (isIoredis(client)) return ioredisClient(client)
    if (isNodeRedis(client)) return nodeRedisClient(client)
  }
  throw refused(show(client))
}

/** ioredis clusters list `nodes()`, those of node-redis their `masters`. */
function isCluster(client: object): boolean {
  return (
    typeof Reflect.get(client, 'nodes') === 'function' ||
    Array.isArray(Reflect.get(client, 'masters'))
  )
}

function refused(what: string): SluiceError {
  return new SluiceError(
    'SLUICE_CLIENT_INVALID',
    `redisStore(client) must be given a client of ioredis (new Redis(url)) or of node-redis (createClient({ url })), but got ${what}`,
  )
}
