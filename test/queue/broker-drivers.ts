import {
  type Broker,
  type BullmqBrokerOptions,
  bullmqBroker,
  type MemoryBrokerOptions,
  memoryBroker,
} from '@sluice/queue'
import { Cluster } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll } from 'vitest'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

export type BrokerLimits = Pick<MemoryBrokerOptions, 'maxDeadLetters' | 'maxKept' | 'maxKeptBytes'>

/** How a broker is made for tests, each a queue of its own. */
export interface BrokerDriver {
  make(limits?: BrokerLimits): Broker
  /** Another broker of the same queue, as in another process. */
  twin?(broker: Broker): Broker
  /** Has a worker lose a job that it runs, as if its process were gone. */
  loseLease?(broker: Broker, id: string): unknown
}

type Place = Pick<BullmqBrokerOptions, 'connection' | 'prefix'>

/** Drivers by name. Each function is to be called where tests are described. */
export const drivers: Readonly<Record<string, () => BrokerDriver>> = {
  memory: () => ({ make: memoryBroker }),
  BullMQ: () => onOneRedis(({ url }) => ({ connection: url })),
  'BullMQ by node-redis': () =>
    onOneRedis(({ url }) => ({ connection: () => createClient({ url }) })),
  'BullMQ on a Cluster': () =>
    bullmqDriver(startRedisCluster, ({ ports }) => {
      const nodes = ports.map((port) => ({ host: '127.0.0.1', port }))
      const redisOptions = { maxRetriesPerRequest: null }
      return { connection: () => new Cluster(nodes, { redisOptions }), prefix: '{bull}' }
    }).driver,
}

function onOneRedis(placeOf: (redis: RedisServer) => Place): BrokerDriver {
  const { driver, server } = bullmqDriver(startRedis, placeOf)
  const loseLease: BrokerDriver['loseLease'] = ({ name }, id) =>
    server().cli('DEL', `bull:${name}:${id}:lock`)
  return { ...driver, loseLease }
}

function bullmqDriver<Server extends { stop(): Promise<void> }>(
  start: () => Promise<Server>,
  placeOf: (server: Server) => Place,
) {
  let server: Server
  beforeAll(async () => {
    server = await start()
  })
  afterAll(() => server.stop())
  let count = 0
  const open = (name: string, limits?: BrokerLimits): Broker =>
    // Longer than the default deadline, which a machine may miss that runs tests.
    bullmqBroker({ ...placeOf(server), name, deadlineMs: 15_000, ...limits })
  const driver: BrokerDriver = {
    make(limits) {
      count += 1
      return open(`queue-${count}`, limits)
    },
    twin: ({ name }) => open(name),
  }
  return { driver, server: () => server }
}
