import type { EventEmitter } from 'node:events'
import { hasMethods } from './redis-client.ts'

/** Events of clients, of nodes of an ioredis Cluster, and of nodes of a node-redis cluster. */
const losses = ['error', 'node error', 'node-error'] as const
const returns = ['ready', 'node-ready'] as const

/**
 * The connection of a client, shared by all its stores. Connection errors are often the only
 * explanation for a missing reply.
 */
export interface ClientConnection {
  /** The last error; set it to `undefined` when Redis has answered. */
  last: Error | undefined
  /** Called on every reconnect. */
  readonly observers: Set<() => void>
}

const known = new WeakMap<object, ClientConnection>()

/**
 * Listens to a client's connection errors. Without a listener they would crash the process
 * (node-redis) or flood the log (ioredis).
 */
export function connectionOf(client: object): ClientConnection {
  const shared = known.get(client)
  if (shared) return shared
  const connection: ClientConnection = { last: undefined, observers: new Set() }
  known.set(client, connection)
  // ioredis clients have the methods of an EventEmitter but are not instances of it.
  if (!hasMethods<Pick<EventEmitter, 'on'>>(client, 'on')) return connection
  for (const event of losses) {
    client.on(event, (error: unknown) => {
      connection.last = error instanceof Error ? error : new Error(String(error))
    })
  }
  for (const event of returns) {
    client.on(event, () => {
      for (const observer of connection.observers) observer()
    })
  }
  return connection
}
