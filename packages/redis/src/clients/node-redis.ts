import { hasMethods, type RedisClient } from './redis-client.ts'

/** The part of a node-redis client that Sluice uses, version 4, 5 or 6. */
export interface NodeRedisLike {
  sendCommand(args: string[]): Promise<unknown>
  readonly isOpen: boolean
}

export function nodeRedisClient(client: object): RedisClient | undefined {
  if (!hasMethods<NodeRedisLike>(client, 'sendCommand')) return undefined
  if (typeof client.isOpen !== 'boolean') return undefined
  return singleClient(client, (command) => client.sendCommand(command))
}

/** The part of a node-redis sentinel (`createSentinel`) that Sluice uses, version 5 or 6. */
export interface NodeRedisSentinelLike {
  sendCommand(isReadonly: boolean | undefined, args: string[]): Promise<unknown>
  getMasterNode(): unknown
  readonly isOpen: boolean
}

export function nodeRedisSentinelClient(client: object): RedisClient | undefined {
  if (!hasMethods<NodeRedisSentinelLike>(client, 'sendCommand', 'getMasterNode')) return undefined
  const single = singleClient(client, (command) => client.sendCommand(false, command))
  return { ...single, sendsAgain: true }
}

function singleClient(
  client: { readonly isOpen: boolean },
  run: (command: string[]) => Promise<unknown>,
): RedisClient {
  return {
    isCluster: false,
    async send(name, args) {
      checkOpen(client)
      return run([name, ...args])
    },
  }
}

/** @throws Error for a closed client: unlike ioredis, node-redis does not connect on its own */
export function checkOpen({ isOpen }: { readonly isOpen: boolean }): void {
  if (isOpen) return
  throw new Error(
    'the client is not connected; call `await client.connect()` before the first request',
  )
}
