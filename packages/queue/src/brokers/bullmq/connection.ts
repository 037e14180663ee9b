import { invalid, SluiceError } from '@sluice/core'

/** Redis for BullMQ: options for its connections, or a client that it copies for its workers. */
export interface BullmqConnection {
  readonly ofQueue: object
  readonly ofWorkers: object
  /** True if workers use the queue's connection in addition to their own. */
  readonly isShared: boolean
  /** Closes the client passed to BullMQ, since BullMQ does not. */
  end(): void
}

/** Creates the connection of a broker on first use. */
export type Connect = () => BullmqConnection

const legal =
  'a URL, ioredis options, or a function that creates a client, but not a client: BullMQ needs its own connections'

/**
 * Delay (ms) before the next attempt to connect. BullMQ's own delay is up to 20 seconds, which is
 * too long after an outage.
 */
function retryStrategy(times: number): number {
  return Math.min(100 * times, 2_000)
}

/** @throws SluiceError if the option has no known form */
export function connectOf(connection: unknown, prefix: string): Connect {
  if (typeof connection === 'function') return () => made(connection(), prefix)
  const options = optionsOf(connection)
  return () => ({
    ofQueue: { ...options },
    // Workers wait for jobs indefinitely.
    ofWorkers: { ...options, maxRetriesPerRequest: null },
    isShared: false,
    end: () => undefined,
  })
}

function optionsOf(connection: unknown): object {
  if (typeof connection === 'string' && URL.canParse(connection)) {
    return { retryStrategy, url: connection }
  }
  if (typeof connection === 'object' && connection !== null && !isClient(connection)) {
    checkNoKeyPrefix(connection)
    return { retryStrategy, ...connection }
  }
  throw invalid({ option: 'connection' }, connection, legal)
}

interface ClientOptions {
  readonly maxRetriesPerRequest?: unknown
  readonly keyPrefix?: unknown
}

interface Client {
  readonly isCluster?: boolean
  /** A Cluster keeps its connection options in `redisOptions`. */
  readonly options?: ClientOptions & { readonly redisOptions?: ClientOptions }
  duplicate(): unknown
  /** ioredis */
  disconnect?(): void
  /** node-redis */
  destroy?(): void
  on(event: 'error', listener: () => void): unknown
}

function isClient(value: object): value is Client {
  return 'duplicate' in value && 'on' in value
}

function made(client: unknown, prefix: string): BullmqConnection {
  if (typeof client !== 'object' || client === null || !isClient(client)) {
    const what = 'a function that creates an ioredis or node-redis client'
    throw invalid({ option: 'connection()' }, client, what)
  }
  if ('masters' in client && 'nodeClient' in client) {
    const what =
      'a function that creates an ioredis Cluster: BullMQ does not support node-redis clusters'
    throw invalid({ option: 'connection()' }, client, what)
  }
  checkClient(client, prefix)
  // The queue reports its errors. After the queue closes, an error without a listener would crash
  // the process.
  client.on('error', () => undefined)
  return {
    ofQueue: client,
    ofWorkers: client,
    isShared: true,
    end: () => (client.destroy ?? client.disconnect)?.call(client),
  }
}

/** Refuses a `keyPrefix`: BullMQ's scripts build keys without it. */
function checkNoKeyPrefix({ keyPrefix }: ClientOptions): void {
  if (keyPrefix === undefined || keyPrefix === '') return
  throw invalid({ option: 'connection.keyPrefix' }, keyPrefix, 'left out; use prefix instead')
}

function checkClient({ isCluster, options = {} }: Client, prefix: string): void {
  const { maxRetriesPerRequest, keyPrefix } = { ...options, ...options.redisOptions }
  checkNoKeyPrefix({ keyPrefix })
  if (maxRetriesPerRequest) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      'connection() must create a client with maxRetriesPerRequest: null (in redisOptions for a Cluster), because workers wait for jobs indefinitely',
    )
  }
  if (isCluster && !/\{[^{}]+\}/.test(prefix)) {
    const braces =
      "in braces for a Cluster, such as '{bull}': all keys of a queue must be in one slot"
    throw invalid({ option: 'prefix' }, prefix, braces)
  }
}
