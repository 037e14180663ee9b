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
 * A client as users construct it: of ioredis 5 or 6, iovalkey, node-redis 4, 5 or 6, or Valkey
 * GLIDE; for a single node, Sentinel or Cluster. Or one of their own, which sends commands by HTTP.
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
 * @throws SluiceError when it is none that Sluice knows
 */
export function recogniseClient(client: unknown): RedisClient {
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
    `redisStore(client) must be given a client of ioredis (new Redis(url), new Cluster(nodes)), of node-redis (createClient({ url }), createCluster({ rootNodes }), createSentinel(…)), of Valkey GLIDE, or with a method send(command), but got ${quote(client)}`,
  )
}

/** Tells whether the client puts a prefix of its own before keys, as ioredis can. */
export function hasKeyPrefix(client: object): boolean {
  const options: unknown = Reflect.get(client, 'options')
  return isOptions(options) && 'keyPrefix' in options && Boolean(options.keyPrefix)
}
