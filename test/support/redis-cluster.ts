import { freePortPair } from './free-port.ts'
import { type RedisServer, startRedis } from './redis-server.ts'
import { until } from './until.ts'

export type RedisCluster = Awaited<ReturnType<typeof startRedisCluster>>

const slotCount = 16_384
const masterCount = 3
const attempts = 3
/** After so long a silence a node counts as lost: short, so that tests of a failover are. */
const nodeTimeoutMs = 1_000

/** Starts three masters, each with a third of the slots, and a replica of each, and waits until they are in order. */
export async function startRedisCluster() {
  const nodes = await Promise.all(Array.from({ length: 2 * masterCount }, startNode))
  const stop = async () => void (await Promise.all(nodes.map((node) => node.stop())))
  try {
    await join(nodes)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    /** Where clients may begin: all nodes, also those that were killed meanwhile. */
    ports: nodes.map(({ port }) => port),
    /** The masters in the order of their slots, as one of the live nodes knows them. */
    masters: async () => (await shards(nodes)).map(({ master }) => master),
    masterOf: (slot: number) => masterOf(nodes, slot),
    replicaOf: (master: RedisServer) => replicaOf(nodes, master),
    beginMove: (slot: number) => beginMove(nodes, slot),
    untilOk: () => untilOk(nodes),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** A node listens on two ports; whoever takes one of them meanwhile costs an attempt. */
async function startNode(): Promise<RedisServer> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePortPair()
    const args = [
      ...['--cluster-enabled', 'yes', '--cluster-port', `${port + 1}`],
      ...['--cluster-node-timeout', `${nodeTimeoutMs}`, '--cluster-replica-validity-factor', '0'],
      // A replica that joins need not wait for others to share its copy.
      ...['--repl-diskless-sync-delay', '0'],
    ]
    try {
      return await startRedis({ port, args })
    } catch (error) {
      if (attempt === attempts) throw error
    }
  }
}

async function join(nodes: readonly RedisServer[]): Promise<void> {
  const [first, ...others] = nodes
  const masters = nodes.slice(0, masterCount)
  for (const [index, master] of masters.entries()) {
    const from = Math.floor((index * slotCount) / masterCount)
    const to = Math.floor(((index + 1) * slotCount) / masterCount)
    const slots = Array.from({ length: to - from }, (_, i) => from + i)
    await master.cli('CLUSTER', 'ADDSLOTS', ...slots)
    // Masters of one epoch would first have to settle which of them counts.
    await master.cli('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
  }
  for (const { port } of others) {
    await first?.cli('CLUSTER', 'MEET', '127.0.0.1', port, port + 1)
  }
  await until('all nodes know each other', async () => {
    const known = await Promise.all(nodes.map((node) => node.cli('CLUSTER', 'NODES')))
    return known.every((text) => {
      const lines = String(text).trim().split('\n')
      return lines.length === nodes.length && !String(text).includes('handshake')
    })
  })
  for (const [index, master] of masters.entries()) {
    await nodes[masterCount + index]?.cli('CLUSTER', 'REPLICATE', await idOf(master))
  }
  await untilOk(nodes)
  await until('each master has a replica that follows', async () => {
    const infos = await Promise.all(masters.map((master) => master.cli('INFO', 'replication')))
    return infos.every((info) => String(info).includes('state=online'))
  })
}

/** Waits until every live node says that the cluster is in order. */
async function untilOk(nodes: readonly RedisServer[]): Promise<void> {
  await until('the cluster is in order', async () => {
    const live = await alive(nodes)
    const states = await Promise.all(live.map((node) => node.cli('CLUSTER', 'INFO')))
    return states.every((state) => String(state).includes('cluster_state:ok'))
  })
}

interface Shard {
  readonly from: number
  readonly to: number
  readonly master: RedisServer
}

async function shards(nodes: readonly RedisServer[]): Promise<readonly Shard[]> {
  const [witness] = await alive(nodes)
  const slots = await witness?.cli('CLUSTER', 'SLOTS')
  const found: Shard[] = []
  for (const entry of Array.isArray(slots) ? slots : []) {
    const [from, to, owner] = Array.isArray(entry) ? entry : []
    const port = Array.isArray(owner) ? owner[1] : undefined
    const master = nodes.find((node) => node.port === port)
    if (master) found.push({ from: Number(from), to: Number(to), master })
  }
  return found.sort((a, b) => a.from - b.from)
}

async function masterOf(nodes: readonly RedisServer[], slot: number): Promise<RedisServer> {
  const shard = (await shards(nodes)).find(({ from, to }) => from <= slot && slot <= to)
  if (!shard) throw new Error(`no live master has slot ${slot}`)
  return shard.master
}

async function replicaOf(
  nodes: readonly RedisServer[],
  master: RedisServer,
): Promise<RedisServer | undefined> {
  const replicas = String(await master.cli('CLUSTER', 'REPLICAS', await idOf(master)))
  return nodes.find(({ port }) => replicas.includes(`:${port}@`))
}

/** Declares that a slot moves to another master, and leaves its keys where they are: half of what a resharding does. */
async function beginMove(nodes: readonly RedisServer[], slot: number) {
  const from = await masterOf(nodes, slot)
  const masters = new Set((await shards(nodes)).map(({ master }) => master))
  const to = [...masters].find((master) => master !== from)
  if (!to) throw new Error('there is no other master')
  const [fromId, toId] = [await idOf(from), await idOf(to)]
  await to.cli('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId)
  await from.cli('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId)

  /** Moves keys, all of them unless told how many. */
  async function moveKeys(most = Number.POSITIVE_INFINITY): Promise<void> {
    let left = most
    while (left > 0) {
      const keys = await from.cli('CLUSTER', 'GETKEYSINSLOT', slot, Math.min(10, left))
      if (!Array.isArray(keys) || keys.length === 0) return
      left -= keys.length
      const target = ['127.0.0.1', to?.port ?? 0, '', 0, 5_000]
      await from.cli('MIGRATE', ...target, 'KEYS', ...keys.map(String))
    }
  }

  return {
    moveKeys,
    /** Moves what is left, and tells all masters. */
    async finish() {
      await moveKeys()
      // The target first: while it still imports, the source would send everybody to it in vain.
      const others = [...masters].filter((master) => master !== to && master !== from)
      for (const node of [to, from, ...others]) {
        await node.cli('CLUSTER', 'SETSLOT', slot, 'NODE', toId)
      }
    },
  }
}

async function idOf(node: RedisServer): Promise<string> {
  return String(await node.cli('CLUSTER', 'MYID'))
}

async function alive(nodes: readonly RedisServer[]): Promise<readonly RedisServer[]> {
  const answers = await Promise.allSettled(nodes.map((node) => node.cli('PING')))
  return nodes.filter((_, index) => answers[index]?.status === 'fulfilled')
}
