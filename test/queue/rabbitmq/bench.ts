import type { Broker } from '@sluice/queue'
import { type RabbitmqBrokerOptions, rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { type RabbitmqServer, startRabbitmq } from '../../support/rabbitmq-server.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'

/** A RabbitMQ and a Redis for the tests of a file, and brokers of them. */
export class RabbitmqBench {
  readonly #settings: readonly string[]
  #servers: { rabbitmq: RabbitmqServer; redis: RedisServer } | undefined
  #count = 0

  private constructor(settings: readonly string[]) {
    this.#settings = settings
  }

  get rabbitmq(): RabbitmqServer {
    return this.#started.rabbitmq
  }

  get redis(): RedisServer {
    return this.#started.redis
  }

  get #started() {
    if (!this.#servers) throw new Error('it is there in tests alone')
    return this.#servers
  }

  /** To be called where tests are described. */
  static of(...settings: readonly string[]): RabbitmqBench {
    const bench = new RabbitmqBench(settings)
    beforeAll(async () => {
      const [rabbitmq, redis] = await Promise.all([startRabbitmq(bench.#settings), startRedis()])
      bench.#servers = { rabbitmq, redis }
    }, 150_000)
    afterAll(async () => {
      await Promise.all([bench.rabbitmq.stop(), bench.redis.stop()])
    })
    return bench
  }

  /** A name of a queue that no other test has. */
  newName(): string {
    this.#count += 1
    return `queue-${this.#count}`
  }

  /** A broker, until the end of the test. Errors of its connections are expected. */
  open(options: Partial<RabbitmqBrokerOptions> = {}): Broker {
    const client = new Redis(this.redis.url, { maxRetriesPerRequest: null })
    client.on('error', () => undefined)
    const broker = rabbitmqBroker({
      ...{ connection: this.rabbitmq.url, store: redisStore(client), name: this.newName() },
      ...{ deadlineMs: 15_000, observers: { onError: () => undefined } },
      ...options,
    })
    onTestFinished(async () => {
      await broker.close()
      client.disconnect()
    })
    return broker
  }
}
