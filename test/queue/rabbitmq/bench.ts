import type { Broker } from '@sluice/queue'
import { type RabbitmqBrokerOptions, rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { type RabbitmqServer, startRabbitmq } from '../../support/rabbitmq-server.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { TestBench } from '../broker-bench.ts'

/** For workers that run one job at a time, and hold it as long as they like. */
export const alone = { concurrency: 1, leaseMs: 60_000, onStalled: () => undefined }

/** A RabbitMQ and a Redis for the tests of a file, and brokers of them. To be called where tests are described. */
export function rabbitmqBench() {
  let rabbitmq: RabbitmqServer
  let redis: RedisServer
  let count = 0
  beforeAll(async () => {
    ;[rabbitmq, redis] = await Promise.all([startRabbitmq(), startRedis()])
  }, 150_000)
  afterAll(() => Promise.all([rabbitmq.stop(), redis.stop()]))

  function newName(): string {
    count += 1
    return `queue-${count}`
  }

  function newClient(): Redis {
    const client = new Redis(redis.url, { maxRetriesPerRequest: null })
    client.on('error', () => undefined)
    onTestFinished(() => client.disconnect())
    return client
  }

  /** A broker, until the end of the test. Errors of its connections are expected. */
  function open(options: Partial<RabbitmqBrokerOptions> = {}): Broker {
    const broker = rabbitmqBroker({
      ...{ connection: rabbitmq.url, store: redisStore(newClient()), name: newName() },
      ...{ deadlineMs: 15_000, observers: { onError: () => undefined } },
      ...options,
    })
    onTestFinished(() => broker.close())
    return broker
  }

  const newBench = (options?: Partial<RabbitmqBrokerOptions>) =>
    new TestBench(open(options), undefined, 40_000)

  return {
    get rabbitmq() {
      return rabbitmq
    },
    get redis() {
      return redis
    },
    loseChannels: () => rabbitmq.control('close_all_connections', 'a test'),
    ...{ newName, newClient, open, newBench },
  }
}
