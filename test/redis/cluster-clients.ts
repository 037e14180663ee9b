import type { UserClient } from '@sluice/redis'
import { Cluster } from 'ioredis'
import { Cluster as Cluster5 } from 'ioredis5'
import { createCluster } from 'redis'
import { createCluster as createCluster4 } from 'redis4'
import { createCluster as createCluster5 } from 'redis5'

interface Connected {
  readonly client: UserClient
  close(): Promise<void>
}

export interface ClusterClient {
  readonly name: string
  /** @param ports of nodes where it may begin */
  connect(ports: readonly number[]): Promise<Connected>
}

/** Clients report every lost connection, which these tests cause. */
const ignore = () => undefined

function startupNodes(ports: readonly number[]): { host: string; port: number }[] {
  return ports.map((port) => ({ host: '127.0.0.1', port }))
}

function rootNodes(ports: readonly number[]): { url: string }[] {
  return ports.map((port) => ({ url: `redis://127.0.0.1:${port}` }))
}

/** Every client of a Cluster that Sluice supports, as its users set it up first. */
export const clusterClients: readonly ClusterClient[] = [
  {
    name: 'ioredis 6',
    async connect(ports) {
      const client = new Cluster(startupNodes(ports)).on('error', ignore)
      return { client, close: async () => client.disconnect() }
    },
  },
  {
    name: 'ioredis 5',
    async connect(ports) {
      const client = new Cluster5(startupNodes(ports)).on('error', ignore)
      return { client, close: async () => client.disconnect() }
    },
  },
  {
    name: 'node-redis 6',
    async connect(ports) {
      const client = createCluster({ rootNodes: rootNodes(ports) }).on('error', ignore)
      await client.connect()
      return { client, close: async () => client.destroy() }
    },
  },
  {
    name: 'node-redis 5',
    async connect(ports) {
      const client = createCluster5({ rootNodes: rootNodes(ports) }).on('error', ignore)
      await client.connect()
      return { client, close: async () => client.destroy() }
    },
  },
  {
    name: 'node-redis 4',
    async connect(ports) {
      const client = createCluster4({ rootNodes: rootNodes(ports) }).on('error', ignore)
      await client.connect()
      return { client, close: () => client.disconnect() }
    },
  },
]
