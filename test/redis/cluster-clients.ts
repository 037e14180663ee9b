import type { UserClient } from '@sluice/redis'
import { Cluster } from 'ioredis'
import { Cluster as Cluster5 } from 'ioredis5'
import { Cluster as IovalkeyCluster } from 'iovalkey'
import { createCluster } from 'redis'
import { createCluster as createCluster4 } from 'redis4'
import { createCluster as createCluster5 } from 'redis5'
import { GlideClusterClient } from '../support/glide.ts'

interface Connected {
  readonly client: UserClient
  close(): Promise<void>
}

export interface ClusterClient {
  readonly name: string
  /** True if a call may fail while its slot moves: GLIDE gives up after some redirections. */
  readonly failsWhileSlotsMove?: boolean
  /** @param ports of nodes where it may begin */
  connect(ports: readonly number[]): Promise<Connected>
  /** The same, as it is while it connects. GLIDE shows no such client. */
  begin?(ports: readonly number[]): Connected
}

/** Clients report every lost connection, which these tests cause. */
const ignore = () => undefined

function startupNodes(ports: readonly number[]): { host: string; port: number }[] {
  return ports.map((port) => ({ host: '127.0.0.1', port }))
}

function rootNodes(ports: readonly number[]): { url: string }[] {
  return ports.map((port) => ({ url: `redis://127.0.0.1:${port}` }))
}

/** How each client is made, and whether it has to be told to connect. */
const makers = {
  'ioredis 6': (ports) => disconnecting(new Cluster(startupNodes(ports)).on('error', ignore)),
  'ioredis 5': (ports) => disconnecting(new Cluster5(startupNodes(ports)).on('error', ignore)),
  iovalkey: (ports) => disconnecting(new IovalkeyCluster(startupNodes(ports)).on('error', ignore)),
  'node-redis 6': (ports) => {
    const client = createCluster({ rootNodes: rootNodes(ports) }).on('error', ignore)
    return { client, connected: client.connect(), close: async () => client.destroy() }
  },
  'node-redis 5': (ports) => {
    const client = createCluster5({ rootNodes: rootNodes(ports) }).on('error', ignore)
    return { client, connected: client.connect(), close: async () => client.destroy() }
  },
  'node-redis 4': (ports) => {
    const client = createCluster4({ rootNodes: rootNodes(ports) }).on('error', ignore)
    return { client, connected: client.connect(), close: () => client.disconnect() }
  },
} satisfies Record<string, (ports: readonly number[]) => Begun>

interface Begun extends Connected {
  readonly connected: Promise<unknown>
}

/** Connects by itself. */
function disconnecting(client: UserClient & { disconnect(): void }): Begun {
  return { client, connected: Promise.resolve(), close: async () => client.disconnect() }
}

/** Every client of a Cluster that Sluice supports, as its users set it up first. */
export const clusterClients: readonly ClusterClient[] = [
  ...Object.entries(makers).map(([name, make]) => ({
    name,
    begin: make,
    async connect(ports: readonly number[]) {
      const { connected, ...rest } = make(ports)
      await connected
      return rest
    },
  })),
  {
    name: 'Valkey GLIDE',
    failsWhileSlotsMove: true,
    async connect(ports) {
      const client = await GlideClusterClient.createClient({ addresses: startupNodes(ports) })
      return { client, close: async () => client.close() }
    },
  },
]
