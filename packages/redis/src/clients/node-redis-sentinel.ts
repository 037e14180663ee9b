import { checkOpen } from './node-redis.ts'
import type { RedisClient } from './redis-client.ts'

/** The part that Sluice uses of a node-redis sentinel (`createSentinel`), version 5 or 6. */
export interface NodeRedisSentinelLike {
  sendCommand(isReadonly: boolean | undefined, args: string[]): Promise<unknown>
  getMasterNode(): unknown
  readonly isOpen: boolean
}

/** A node-redis sentinel, known by its methods: it sends commands, and knows its master. */
export function isNodeRedisSentinel(client: object): client is NodeRedisSentinelLike {
  return (
    typeof Reflect.get(client, 'sendCommand') === 'function' &&
    typeof Reflect.get(client, 'getMasterNode') === 'function'
  )
}

export function nodeRedisSentinelClient(client: NodeRedisSentinelLike): RedisClient {
  return {
    isCluster: false,
    async send(name, args) {
      checkOpen(client)
      return client.sendCommand(false, [name, ...args])
    },
  }
}
