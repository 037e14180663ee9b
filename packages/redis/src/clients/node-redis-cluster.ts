import { hashTags, slotOf } from '../keys/hash-tags.ts'
import { checkOpen } from './node-redis.ts'
import { askedNode, hasMethods, type RedisClient } from './redis-client.ts'

/** The part that Sluice uses of a node-redis cluster (`createCluster`), version 4, 5 or 6. */
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
  /** A client, or a promise of it; `undefined` until it is needed. */
  readonly client?: unknown
  readonly connectPromise?: unknown
}

interface NodeClient {
  sendCommand(args: string[]): Promise<unknown>
}

export function isNodeRedisCluster(client: object): client is NodeRedisClusterLike {
  return hasMethods(client, 'sendCommand') && Array.isArray(Reflect.get(client, 'masters'))
}

/** The shortest time between two questions to live nodes for the new master of a key. */
const askOthersEveryMs = 100
/** Interval (ms) of the checks that a connecting client has found its nodes. */
const lookMs = 5
/** The SHA-1 of no script: EVALSHA is the one command that users have to permit anyway. */
const noScript = '0'.repeat(40)

export function nodeRedisClusterClient(client: NodeRedisClusterLike): RedisClient {
  let connecting: Promise<void> | undefined
  let asking: Promise<unknown> | undefined
  let askedAt = Number.NEGATIVE_INFINITY

  /**
   * Lets the client find the new master of a key. By itself it does so only when a node redirects
   * it. Meanwhile commands wait for the old master, in versions 4 and 5 for ever. So a live node is
   * asked for the key, which it does not have.
   */
  async function findMaster(key: string): Promise<void> {
    const elsewhere = hashTags.map((tag) => `{${tag}}`).find((other) => isReady(client, other))
    if (elsewhere !== undefined && !asking && performance.now() >= askedAt + askOthersEveryMs) {
      asking = client
        .sendCommand(elsewhere, false, ['EVALSHA', noScript, '1', key])
        // The client tells it of the redirections that it followed in vain.
        .catch(() => undefined)
        .finally(() => {
          asking = undefined
          askedAt = performance.now()
        })
    }
    await asking
  }

  return {
    isCluster: true,
    async send(name, args, key) {
      const command = [name, ...args]
      checkOpen(client)
      if (isConnecting(client, key)) {
        connecting ??= untilConnected(client, key).finally(() => {
          connecting = undefined
        })
        await connecting
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

/** Tells whether the client looks for its first nodes: it queues no commands meanwhile. */
function isConnecting({ isOpen, isReady, slots }: NodeRedisClusterLike, key: string): boolean {
  return isOpen && (isReady === false || slots[slotOf(key)] === undefined)
}

async function untilConnected(client: NodeRedisClusterLike, key: string): Promise<void> {
  while (isConnecting(client, key)) {
    await new Promise((resolve) => {
      setTimeout(resolve, lookMs).unref()
    })
  }
}

/** Tells whether the master of a key is connected; `undefined` if it never was. */
function isReady({ slots }: NodeRedisClusterLike, key: string): boolean | undefined {
  const { client, connectPromise } = slots[slotOf(key)]?.master ?? {}
  if (connectPromise !== undefined || typeof client !== 'object' || client === null)
    return undefined
  return 'isReady' in client ? client.isReady === true : undefined
}

/**
 * Version 4 sends other commands between ASKING and its command. When it gives up, it returns the
 * redirection: the redirected command did not run.
 */
async function askAt(node: NodeClient, command: string[]): Promise<unknown> {
  const [, reply] = await Promise.all([node.sendCommand(['ASKING']), node.sendCommand(command)])
  return reply
}
