import type { UserClient } from '@sluice/redis'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { Redis as Iovalkey, Cluster as IovalkeyCluster } from 'iovalkey'
import { createClient, createCluster, createSentinel } from 'redis'
import { createClient as createClient4, createCluster as createCluster4 } from 'redis4'
import {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from 'redis5'

/** A client as its users set it up first, which nobody listens to. */
export interface RedisClient {
  readonly client: UserClient
  connect(): Promise<unknown>
  close(): Promise<void>
}

type Makers<Target extends readonly unknown[]> = Readonly<
  Record<string, (...target: Target) => RedisClient>
>

const host = '127.0.0.1'
const url = (port: number) => `redis://${host}:${port}`
const nodes = (ports: readonly number[]) => ports.map((port) => ({ host, port }))
const rootNodes = (ports: readonly number[]) => ports.map((port) => ({ url: url(port) }))

export const singleClients: Makers<[port: number]> = {
  'ioredis 6': (port) => itself(new Redis(url(port))),
  'ioredis 5': (port) => itself(new Redis5(url(port))),
  iovalkey: (port) => itself(new Iovalkey(url(port))),
  'node-redis 6': (port) => connected(createClient({ url: url(port) })),
  'node-redis 5': (port) => connected(createClient5({ url: url(port) })),
  'node-redis 4': (port) => connected(createClient4({ url: url(port) })),
}

/** Clients of a Cluster, which begin at some of its nodes. */
export const clusterClients: Makers<[ports: readonly number[]]> = {
  'ioredis 6': (ports) => itself(new Cluster(nodes(ports))),
  'ioredis 5': (ports) => itself(new Cluster5(nodes(ports))),
  iovalkey: (ports) => itself(new IovalkeyCluster(nodes(ports))),
  'node-redis 6': (ports) => connected(createCluster({ rootNodes: rootNodes(ports) })),
  'node-redis 5': (ports) => connected(createCluster5({ rootNodes: rootNodes(ports) })),
  'node-redis 4': (ports) => connected(createCluster4({ rootNodes: rootNodes(ports) })),
}

/** Clients that ask sentinels for the master. */
export const sentinelClients: Makers<[ports: readonly number[], name: string]> = {
  'ioredis 6': (ports, name) => itself(new Redis({ sentinels: nodes(ports), name })),
  'ioredis 5': (ports, name) => itself(new Redis5({ sentinels: nodes(ports), name })),
  'node-redis 6': (ports, name) =>
    connected(createSentinel({ name, sentinelRootNodes: nodes(ports) })),
  'node-redis 5': (ports, name) =>
    connected(createSentinel5({ name, sentinelRootNodes: nodes(ports) })),
}

export function itself(client: UserClient & { disconnect(): unknown }): RedisClient {
  return { client, connect: async () => undefined, close: async () => void client.disconnect() }
}

interface Connecting {
  connect(): Promise<unknown>
  destroy?(): unknown
  disconnect?(): unknown
}

export function connected(client: UserClient & Connecting): RedisClient {
  return {
    client,
    connect: () => client.connect(),
    async close() {
      try {
        await (client.destroy ? client.destroy() : client.disconnect?.())
      } catch {
        // It never connected.
      }
    },
  }
}
