import { hashTags, slotOf } from '../keys/hash-tags.ts'
import { checkOpen } from './node-redis.ts'
import { askedNode, hasMethods, type RedisClient } from './redis-client.ts'

/** The part of a node-redis cluster (`createCluster`) that Sluice uses, version 4, 5 or 6. */
export interface NodeRedisClusterLike {
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean | undefined,
    args: string[],
  ): Promise<unknown>
  readonly isOpen: boolean
  /** True if it has found its nodes; `undefined` before version 6. */
  readonly isReady?: boolean
  readonly masters: readonly unknown[]
  readonly slots: readonly ({ readonly master: Node } | undefined)[]
  readonly nodeByAddress: { get(address: string): Node | undefined }
  nodeClient(node: Node): NodeClient | Promise<NodeClient>
}

interface Node {
  readonly address: string
  /** A client, or a promise of one; `undefined` until it is needed. */
  readonly client?: unknown
  readonly connectPromise?: unknown
}

interface NodeClient {
  sendCommand(args: string[]): Promise<unknown>
}

/** Minimum time between two queries to live nodes for the new master of a key. */
const askOthersEveryMs = 100
/** Interval (ms) of the checks that a connecting client has found its nodes. */
const lookMs = 5
/** Matches no script. EVALSHA is used because its permission is required anyway. */
const noScript = '0'.repeat(40)

export function nodeRedisClusterClient(cluster: object): RedisClient | undefined {
  if (!hasMethods<NodeRedisClusterLike>(cluster, 'sendCommand')) return undefined
  if (!Array.isArray(cluster.masters)) return undefined
  const client = cluster
  let asking: Promise<unknown> | undefined
  const askAgain = (): void => {
    asking = undefined
  }

  /**
   * Makes the client discover the new master of a key. On its own it does so only when a node
   * redirects it. Until then commands wait for the old master, forever in versions 4 and 5. So this
   * asks a live node for the key, which answers with a redirection.
   */
  async function findMaster(key: string): Promise<void> {
    const elsewhere = hashTags.map((tag) => `{${tag}}`).find((other) => isReady(client, other))
    if (elsewhere !== undefined) {
      asking ??= client
        .sendCommand(elsewhere, false, ['EVALSHA', noScript, '1', key])
        // The client reports the redirections that it followed in vain.
        .catch(() => undefined)
        .finally(() => setTimeout(askAgain, askOthersEveryMs).unref())
    }
    await asking
  }

  return {
    isCluster: true,
    async send(name, args, key) {
      const command = [name, ...args]
      checkOpen(client)
      while (isConnecting(client, key)) {
        await new Promise((resolve) => setTimeout(resolve, lookMs).unref())
      }
      if (isReady(client, key) === false) {
        await findMaster(key)
        if (isReady(client, key) === false) throw new Error('the connection to the master is lost')
      }
      try {
        return await client.sendCommand(key, false, command)
      } catch (error) {
        const asked = client.nodeByAddress.get(askedNode(error) ?? '')
        if (!asked) throw error
        return askAt(await client.nodeClient(asked), command)
      }
    },
  }
}

/** Returns whether the client is still discovering its first nodes and queues no commands. */
function isConnecting({ isOpen, isReady, slots }: NodeRedisClusterLike, key: string): boolean {
  return isOpen && (isReady === false || slots[slotOf(key)] === undefined)
}

/** Returns whether the master of a key is connected; `undefined` if it never was. */
function isReady({ slots }: NodeRedisClusterLike, key: string): boolean | undefined {
  const { client, connectPromise } = slots[slotOf(key)]?.master ?? {}
  if (connectPromise !== undefined || typeof client !== 'object' || client === null)
    return undefined
  return 'isReady' in client ? client.isReady === true : undefined
}

/**
 * Version 4 may send other commands between ASKING and its command. When it gives up, it returns
 * the redirection, so the command did not run.
 */
async function askAt(node: NodeClient, command: string[]): Promise<unknown> {
  const [, reply] = await Promise.all([node.sendCommand(['ASKING']), node.sendCommand(command)])
  return reply
}
