import { slotOf } from '../keys/hash-tags.ts'
import { askedNode, hasMethods, isMoved, type RedisClient } from './redis-client.ts'

/** The part of an ioredis client that Sluice uses, version 5 or 6. */
export interface IoredisLike {
  call(name: string, ...args: string[]): Promise<unknown>
  defineCommand(...args: never[]): unknown
}

export function ioredisClient(client: object): RedisClient | undefined {
  if (!hasMethods<IoredisLike>(client, 'call', 'defineCommand')) return undefined
  if (hasMethods<IoredisClusterLike>(client, 'nodes')) return clusterClient(client)
  return { isCluster: false, sendsAgain: true, send: (name, args) => client.call(name, ...args) }
}

/** The part of an ioredis `Cluster` that Sluice uses, version 5 or 6. */
export interface IoredisClusterLike extends IoredisLike {
  nodes(role: 'master'): IoredisNode[]
  /** The addresses of the nodes of each slot, its master first; empty until they are known. */
  readonly slots: readonly (readonly string[])[]
  readonly options: { readonly keyPrefix?: string | undefined }
}

interface IoredisNode extends Pick<IoredisLike, 'call'> {
  readonly options: { readonly host?: string | undefined; readonly port?: number | undefined }
}

/**
 * Sends calls directly to their node. A `Cluster` would retry a script after a lost connection,
 * which may count twice, and would delay it by 100 ms at every TRYAGAIN. The `Cluster` only routes
 * scripts that certainly did not run, because their node is unknown or has changed.
 */
function clusterClient(client: IoredisClusterLike): RedisClient {
  return {
    isCluster: true,
    async send(name, args, key) {
      const node = nodeAt(client, client.slots[slotOf(key)]?.[0])
      if (!node) return client.call(name, ...args)
      try {
        return await node.call(name, ...args)
      } catch (error) {
        const asked = nodeAt(client, askedNode(error))
        if (asked) return askAt(asked, name, args)
        if (isMoved(error)) return client.call(name, ...args)
        throw error
      }
    },
  }
}

/** ASKING applies only to the next command on its connection: nothing may come in between. */
async function askAt(node: IoredisNode, name: string, args: readonly string[]): Promise<unknown> {
  const [, reply] = await Promise.all([node.call('asking'), node.call(name, ...args)])
  return reply
}

function nodeAt(client: IoredisClusterLike, address: string | undefined): IoredisNode | undefined {
  // A prefix changes the slot, and nodes do not know the prefix.
  if (address === undefined || client.options.keyPrefix) return undefined
  return client.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === address)
}
