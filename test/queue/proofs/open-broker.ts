import { bullmqBroker } from '@sluice/queue'
import { rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

export interface BrokerPlace {
  readonly redis: string
  /** RabbitMQ delivers the jobs; without it BullMQ does. */
  readonly rabbitmq?: string | undefined
  readonly name: string
}

/** Opens the broker of a queue, as processes of tests do. Errors of its connections are expected. */
export function openBroker({ redis, rabbitmq, name }: BrokerPlace) {
  const client = new Redis(redis, { maxRetriesPerRequest: null })
  client.on('error', () => undefined)
  const store = redisStore(client)
  const shared = { name, observers: { onError: () => undefined } }
  const broker = rabbitmq
    ? rabbitmqBroker({ connection: rabbitmq, store, ...shared })
    : bullmqBroker({ connection: redis, ...shared })
  return { broker, client, store }
}
