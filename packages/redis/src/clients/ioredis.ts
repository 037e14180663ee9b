import { hasMethods, type RedisClient } from './redis-client.ts'

/** The part that Sluice uses of an ioredis client, version 5 or 6. */
export interface IoredisLike {
  call(name: string, ...args: string[]): Promise<unknown>
  defineCommand(...args: never[]): unknown
}

/**
 * An ioredis client, known by its methods: `call` takes any command, and no other client has
 * `defineCommand`.
 */
export function isIoredis(client: object): client is IoredisLike {
  return hasMethods(client, 'call', 'defineCommand')
}

export function ioredisClient(client: IoredisLike): RedisClient {
  return { isCluster: false, send: (name, args) => client.call(name, ...args) }
}
