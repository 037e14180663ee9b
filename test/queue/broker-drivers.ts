import {
  type Broker,
  type BullmqBrokerOptions,
  bullmqBroker,
  type MemoryBrokerOptions,
  memoryBroker,
} from '@sluice/queue'
import { rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { redisStore } from '@sluice/redis'
import { Cluster, Redis } from 'ioredis'
import { createClient } from 'redis'
import { startRabbitmq } from '../support/rabbitmq-server.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis-server.ts'

export type BrokerLimits = Pick<MemoryBrokerOptions, 'maxDeadLetters' | 'maxKept' | 'maxKeptBytes'>

/** How the brokers are made for tests, each a queue of its own. */
export interface BrokerDriver {
  readonly name: string
  start?(): Promise<void>
  stop?(): Promise<void>
  make(limits?: BrokerLimits): Broker
  /** Another broker of the same queue, as in another process. */
  twin?(broker: Broker): Broker
}

export const memoryDriver: BrokerDriver = {
  name: 'memory',
  make: (limits) => memoryBroker(limits),
}

/** Where the broker is connected to, and how. */
type Place = Pick<BullmqBrokerOptions, 'connection' | 'prefix'>

/** A Redis that is started for the tests of a driver. */
interface Started {
  readonly place: Place
  stop(): Promise<void>
}

/** Longer than the default, which a machine may miss that runs tests. */
const deadlineMs = 15_000

function driver(name: string, start: () => Promise<Started>): BrokerDriver {
  let started: Started | undefined
  let count = 0
  const place = (): Place => started?.place ?? { connection: '' }
  return {
    name,
    async start() {
      started = await start()
    },
    async stop() {
      await started?.stop()
    },
    make(limits) {
      count += 1
      return bullmqBroker({ ...place(), name: `queue-${count}`, deadlineMs, ...limits })
    },
    twin: (broker) => bullmqBroker({ ...place(), name: broker.name, deadlineMs }),
  }
}

export function bullmqDriver(): BrokerDriver {
  return driver('BullMQ', async () => {
    const redis = await startRedis()
    return { place: { connection: redis.url }, stop: () => redis.stop() }
  })
}

export function nodeRedisDriver(): BrokerDriver {
  return driver('BullMQ by node-redis', async () => {
    const redis = await startRedis()
    const connection = () => createClient({ url: redis.url })
    return { place: { connection }, stop: () => redis.stop() }
  })
}

export function clusterDriver(): BrokerDriver {
  return driver('BullMQ on a Cluster', async () => {
    const cluster = await startRedisCluster()
    const nodes = cluster.ports.map((port) => ({ host: '127.0.0.1', port }))
    const connection = () => new Cluster(nodes, { redisOptions: { maxRetriesPerRequest: null } })
    return { place: { connection, prefix: '{bull}' }, stop: () => cluster.stop() }
  })
}

export function rabbitmqDriver(): BrokerDriver {
  let count = 0
  let open: ((name: string, limits?: BrokerLimits) => Broker) | undefined
  let end = async (): Promise<void> => undefined
  const made = (name: string, limits?: BrokerLimits): Broker => {
    if (!open) throw new Error('it is there in tests alone')
    return open(name, limits)
  }
  return {
    name: 'RabbitMQ',
    async start() {
      const [rabbitmq, redis] = await Promise.all([startRabbitmq(), startRedis()])
      const client = new Redis(redis.url)
      const shared = { connection: rabbitmq.url, store: redisStore(client), deadlineMs }
      open = (name, limits) => rabbitmqBroker({ ...shared, name, ...limits })
      end = async () => {
        client.disconnect()
        await Promise.all([rabbitmq.stop(), redis.stop()])
      }
    },
    stop: () => end(),
    make(limits) {
      count += 1
      return made(`queue-${count}`, limits)
    },
    twin: (broker) => made(broker.name),
  }
}
