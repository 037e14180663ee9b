import { invalid, SluiceError } from '@sluice/core'

/** Redis for BullMQ: options for its connections, or a client that it copies for its workers. */
export interface BullmqConnection {
  readonly ofQueue: object
  readonly ofWorkers: object
  /** True if workers use the queue's connection beside one of their own. */
  readonly isShared: boolean
  /** Ends the client that BullMQ was given, since BullMQ does not. */
  end(): void
}

/** Makes the connection of a broker when it is used first. */
export type Connect = () => BullmqConnection

const legal =
  'a URL, the options of an ioredis connection, or a function that makes a client, and not a client: BullMQ needs connections of its own'

/**
 * Delay (ms) before the next attempt to connect. BullMQ's own waits up to 20 seconds, too long for
 * a queue that is back.
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
    // Workers wait for jobs for as long as it takes.
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
  /** The options of a Cluster's connections stand in `redisOptions`. */
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
    const what = 'a function that makes a client of ioredis or node-redis'
    throw invalid({ option: 'connection()' }, client, what)
  }
  if ('masters' in client && 'nodeClient' in client) {
    const what = 'a function that makes a Cluster of ioredis: BullMQ knows no Cluster of node-redis'
    throw invalid({ option: 'connection()' }, client, what)
  }
  checkClient(client, prefix)
  // The queue reports its errors. After the queue's end an error without a listener would end the
  // process.
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
      'connection() must make a client with maxRetriesPerRequest: null (of a Cluster in redisOptions): workers wait for jobs for as long as it takes',
    )
  }
  if (isCluster && !/\{[^{}]+\}/.test(prefix)) {
    const braces =
      "a text in braces for a Cluster, as in '{bull}': all keys of a queue must be in one slot"
    throw invalid({ option: 'prefix' }, prefix, braces)
  }
}
