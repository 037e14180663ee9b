import type { EventEmitter } from 'node:events'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { createClient } from 'redis'

/** Clients of Redis as users construct them, with default settings. */
const constructors = {
  'ioredis 6': async (port: number) => silenced(new Redis(port)),
  'ioredis 5': async (port: number) => silenced(new Redis5(port)),
  'node-redis 6': async (port: number) => silenced(createClient({ socket: { port } })).connect(),
}

export type ClientName = keyof typeof constructors
export type AnyClient = Awaited<ReturnType<(typeof constructors)[ClientName]>>

export function connectClient(name: ClientName, port: number): Promise<AnyClient> {
  return constructors[name](port)
}

/** A subject that fails says so by its answers; without a listener clients print the same again, or end the process. */
function silenced<Client extends EventEmitter>(client: Client): Client {
  client.on('error', () => undefined)
  return client
}

export function disconnect(client: AnyClient): void {
  if ('destroy' in client) client.destroy()
  else client.disconnect()
}

/** The client of subjects that are measured through ioredis 6 only. */
export function asIoredis(client: AnyClient): Redis {
  if (client instanceof Redis) return client
  throw new Error('this subject is measured through ioredis 6 only')
}
