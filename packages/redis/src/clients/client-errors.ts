import type { EventEmitter } from 'node:events'
import type { UserClient } from './recognise-client.ts'

/**
 * Events for lost connections: of all clients, of nodes of an ioredis Cluster, and of nodes of a
 * node-redis cluster.
 */
const events = ['error', 'node error', 'node-error'] as const

const known = new WeakMap<object, ClientErrors>()

/** The errors of a client, for all stores on it. */
export function clientErrors(client: UserClient): ClientErrors {
  const errors = known.get(client) ?? new ClientErrors(client)
  known.set(client, errors)
  return errors
}

/**
 * Listens to the errors of a client's connection. That is often the only reason to be had for a
 * command that is not answered. Without a listener, the event would end the process (node-redis) or
 * fill the log (ioredis).
 */
export class ClientErrors {
  #last: Error | undefined

  constructor(client: UserClient) {
    if (!tellsEvents(client)) return
    for (const event of events) {
      client.on(event, (error: unknown) => {
        this.#last = error instanceof Error ? error : new Error(String(error))
      })
    }
  }

  /** The last error, unless Redis has answered since. */
  get last(): Error | undefined {
    return this.#last
  }

  /** Redis has answered. */
  clear(): void {
    this.#last = undefined
  }
}

/**
 * By what it can do: clients of ioredis have the methods of an emitter, and are no instances of it.
 */
function tellsEvents(client: object): client is Pick<EventEmitter, 'on'> {
  return 'on' in client && typeof client.on === 'function'
}
