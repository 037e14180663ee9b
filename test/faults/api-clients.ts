import {
  clusterClients,
  type RedisClient,
  sentinelClients,
  singleClients,
} from '../support/redis-clients.ts'
import type { Connection, Framework } from './api-messages.ts'

/** The libraries as they are by default: both queue commands while they are not connected, and have no timeout for them. */
const libraries = { express: 'ioredis 6', fastify: 'node-redis 6' } as const

export function connectRedis(framework: Framework, connection: Connection): RedisClient {
  const made = clientOf(libraries[framework], connection)
  if (!made) throw new Error(`no client of ${framework} for ${connection.kind}`)
  // What comes of errors of the connection is what this is about.
  made.connect().catch(() => undefined)
  return made
}

function clientOf(library: string, connection: Connection): RedisClient | undefined {
  if (connection.kind === 'single') return singleClients[library]?.(connection.port)
  if (connection.kind === 'cluster') return clusterClients[library]?.(connection.ports)
  return sentinelClients[library]?.(connection.ports, connection.name)
}
