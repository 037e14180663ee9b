import { isOptions, quote, SluiceError } from '@sluice/core'
import { type CommandClient, commandClient, isCommandClient } from './command-client.ts'
import { type GlideLike, glideClient, isGlide } from './glide.ts'
import {
  type IoredisClusterLike,
  type IoredisLike,
  ioredisClient,
  ioredisClusterClient,
  isIoredis,
  isIoredisCluster,
} from './ioredis.ts'
import {
  isNodeRedis,
  isNodeRedisSentinel,
  type NodeRedisLike,
  type NodeRedisSentinelLike,
  nodeRedisClient,
  nodeRedisSentinelClient,
} from './node-redis.ts'
import {
  isNodeRedisCluster,
  type NodeRedisClusterLike,
  nodeRedisClusterClient,
} from './node-redis-cluster.ts'
import type { RedisClient } from './redis-client.ts'

/**
 * A client of ioredis 5 or 6, iovalkey, node-redis 4, 5 or 6, or Valkey GLIDE; for a single node,
 * Sentinel or Cluster. Or a custom client that sends commands over HTTP.
 */
export type UserClient =
  | IoredisLike
  | IoredisClusterLike
  | NodeRedisLike
  | NodeRedisClusterLike
  | NodeRedisSentinelLike
  | GlideLike
  | CommandClient

/**
 * Recognises a client by methods that no other client has.
 * @throws SluiceError for an unknown client
 */
export function recogniseClient(client: unknown): RedisClient {
  quickenStrings()
  if (typeof client === 'object' && client !== null) {
    if (isIoredis(client))
      return isIoredisCluster(client) ? ioredisClusterClient(client) : ioredisClient(client)
    if (isNodeRedisCluster(client)) return nodeRedisClusterClient(client)
    if (isNodeRedisSentinel(client)) return nodeRedisSentinelClient(client)
    if (isNodeRedis(client)) return nodeRedisClient(client)
    if (isGlide(client)) return glideClient(client)
    if (isCommandClient(client)) return commandClient(client)
  }
  throw new SluiceError(
    'SLUICE_CLIENT_INVALID',
    `redisStore(client) needs a client of ioredis (new Redis(url), new Cluster(nodes)), node-redis (createClient({ url }), createCluster({ rootNodes }), createSentinel(…)) or Valkey GLIDE, or an object with a send(command) method, but got ${quote(client)}`,
  )
}

/**
 * ioredis 6 and node-redis 5 load a subclass of String. On Node 20 it leaves `String.prototype` in
 * V8's dictionary mode, and the text methods of the whole process take twice the time. A store to
 * an object that inherits from it makes it fast again.
 */
function quickenStrings(): void {
  const text: { isFast?: boolean } = Object.create(String.prototype)
  text.isFast = true
}

/** Returns whether the client adds its own prefix to keys, as ioredis can. */
export function hasKeyPrefix(client: object): boolean {
  const options: unknown = Reflect.get(client, 'options')
  return isOptions(options) && 'keyPrefix' in options && Boolean(options.keyPrefix)
}
