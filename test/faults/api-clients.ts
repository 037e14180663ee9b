import type { UserClient } from '@sluice/redis'
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster, createSentinel } from 'redis'
import type { Connection, Framework } from './api-messages.ts'

export interface ApiClient {
  readonly client: UserClient
  end(): void
}

/** Errors of the connection are what this is about; Sluice tells of what comes of them. */
const ignore = () => undefined

/**
 * Clients as they are by default: both libraries queue commands while they are not connected, and have no timeout for them. Express APIs have
 * ioredis, those of Fastify node-redis.
 */
export function connectRedis(framework: Framework, connection: Connection): ApiClient {
  return framework === 'express' ? ioredis(connection) : nodeRedis(connection)
}

function ioredis(connection: Connection): ApiClient {
  const client = ioredisFor(connection)
  client.on('error', ignore)
  return { client, end: () => client.disconnect() }
}

function ioredisFor(connection: Connection): Redis | Cluster {
  if (connection.kind === 'single') return new Redis(at(connection.port))
  const nodes = connection.ports.map(at)
  if (connection.kind === 'cluster') return new Cluster(nodes)
  return new Redis({ sentinels: nodes, name: connection.name })
}

function nodeRedis(connection: Connection): ApiClient {
  if (connection.kind === 'single') return opened(createClient({ socket: at(connection.port) }))
  const nodes = connection.ports.map(at)
  if (connection.kind === 'cluster') {
    return opened(createCluster({ rootNodes: nodes.map((socket) => ({ socket })) }))
  }
  return opened(createSentinel({ name: connection.name, sentinelRootNodes: nodes }))
}

type NodeRedis = UserClient & {
  on(event: 'error', listener: () => undefined): unknown
  connect(): Promise<unknown>
  destroy(): unknown
}

function opened(client: NodeRedis): ApiClient {
  client.on('error', ignore)
  client.connect().catch(ignore)
  return { client, end: () => void client.destroy() }
}

function at(port: number) {
  return { host: '127.0.0.1', port }
}
