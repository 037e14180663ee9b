import {
  type Duration,
  durationMs,
  invalid,
  knownFields,
  orDefault,
  type Store,
  type StoreScripts,
  withoutRegions,
} from '@sluice/core'
import {
  type SharedOptions,
  type SharedSetup,
  sharedOptionNames,
  sharedSetup,
} from '../redis/options.ts'
import { type RabbitmqServer, serverOf } from './connection.ts'

/** Options of `rabbitmqBroker`. */
export interface RabbitmqBrokerOptions extends SharedOptions {
  /**
   * RabbitMQ: `amqp://…` or `amqps://…`, the options of a connection of amqplib, or a function that
   * makes a connection, as for a certificate of your own. The broker ends what it opens.
   */
  connection: string | object | (() => Promise<object>)
  /** Redis, where jobs are kept: `redisStore(client)`. The client stays yours. */
  store: Store
  /** Begins the names of RabbitMQ's queues and of the keys in Redis. @default 'sluice' */
  prefix?: string | undefined
  /**
   * The server's `consumer_timeout`: it takes a job from a worker that holds it for longer.
   * @default '30m', as the server's
   */
  consumerTimeout?: Duration | undefined
}

/** The checked options of a RabbitMQ broker, with the defaults filled in. */
export interface RabbitmqSetup extends SharedSetup {
  readonly server: RabbitmqServer
  readonly runScript: StoreScripts['run']
  /** The queue of RabbitMQ. */
  readonly queue: string
  /** Prefix of the keys in Redis. All are in one slot of a Cluster. */
  readonly keyPrefix: string
  readonly consumerTimeoutMs: number
}

const optionNames: readonly (keyof RabbitmqBrokerOptions)[] = [
  ...(['connection', 'store', 'prefix', 'consumerTimeout'] as const),
  ...sharedOptionNames,
]

export function setUpRabbitmq(options: RabbitmqBrokerOptions): RabbitmqSetup {
  knownFields(options, 'rabbitmqBroker', optionNames)
  const prefix = orDefault(options.prefix, 'sluice')
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9._-]{1,100}$/.test(prefix)) {
    throw invalid({ option: 'prefix' }, prefix, "1 to 100 letters, digits, '.', '_' and '-'")
  }
  const shared = sharedSetup(options)
  return {
    ...shared,
    server: serverOf(options.connection),
    runScript: scriptsOf(withoutRegions(options.store)),
    queue: `${prefix}.${shared.name}`,
    keyPrefix: `{${prefix}:${shared.name}}`,
    consumerTimeoutMs: durationMs(orDefault(options.consumerTimeout, '30m'), 'consumerTimeout'),
  }
}

function scriptsOf(store: Store | undefined): StoreScripts['run'] {
  if (store?.scripts) return store.scripts.run.bind(store.scripts)
  throw invalid({ option: 'store' }, store?.name ?? store, 'a store in Redis: redisStore(client)')
}
