import type { EventEmitter } from 'node:events'
import type { UserClient } from './recognise-client.ts'
import { hasMethods } from './redis-client.ts'

/** Events of clients, of nodes of an ioredis Cluster, and of nodes of a node-redis cluster. */
const losses = ['error', 'node error', 'node-error'] as const
const returns = ['ready', 'node-ready'] as const

const known = new WeakMap<object, ClientConnection>()

/** The connection of a client, for all stores on it. */
export function connectionOf(client: UserClient): ClientConnection {
  const connection = known.get(client) ?? new ClientConnection(client)
  known.set(client, connection)
  return connection
}

/**
 * Listens to the errors of a client's connection: often the only reason for a command that is not
 * answered. Without a listener they would end the process (node-redis) or fill the log (ioredis).
 */
export class ClientConnection {
  /** The last error; set it to `undefined` when Redis has answered. */
  last: Error | undefined
  readonly #observers = new Set<() => void>()

  constructor(client: UserClient) {
    if (!tellsEvents(client)) return
    for (const event of losses) {
      client.on(event, (error: unknown) => {
        this.last = error instanceof Error ? error : new Error(String(error))
      })
    }
    for (const event of returns) {
      client.on(event, () => {
        for (const observer of this.#observers) observer()
      })
    }
  }

  /** Tells each time when it is back. Returns what ends that. */
  observe(observer: () => void): () => void {
    this.#observers.add(observer)
    return () => this.#observers.delete(observer)
  }
}

/** Clients of ioredis have the methods of an emitter, and are no instances of it. */
function tellsEvents(client: object): client is Pick<EventEmitter, 'on'> {
  return hasMethods(client, 'on')
}
