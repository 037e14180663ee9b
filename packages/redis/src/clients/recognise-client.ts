import { isOptions, quote, SluiceError } from '@sluice/core'
import { type CommandClient, commandClient } from './command-client.ts'
import { type GlideLike, glideClient } from './glide.ts'
import { type IoredisClusterLike, type IoredisLike, ioredisClient } from './ioredis.ts'
import {
  type NodeRedisLike,
  type NodeRedisSentinelLike,
  nodeRedisClient,
  nodeRedisSentinelClient,
} from './node-redis.ts'
import { type NodeRedisClusterLike, nodeRedisClusterClient } from './node-redis-cluster.ts'
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

/** Each returns `undefined` for other clients, but later ones would take those of earlier ones. */
const kinds = [
  ioredisClient,
  nodeRedisClusterClient,
  nodeRedisSentinelClient,
  nodeRedisClient,
  glideClient,
  commandClient,
]

/**
 * Recognises a client by methods that no other client has.
 * @throws SluiceError for an unknown client
 */
export function recogniseClient(client: unknown): RedisClient {
  quickenStrings()
  if (typeof client === 'object' && client !== null) {
    for (const kind of kinds) {
      const known = kind(client)
      if (known) return known
    }
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
