import { memoryStore, type Store } from '@sluice/core'
import { type Broker, bullmqBroker, memoryBroker } from '@sluice/queue'
import { rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

export interface Opened {
  /** Where jobs are kept. */
  broker: Broker
  /** Where limits are counted: separate connections, since BullMQ's wait forever and a limiter's must not. */
  store: Store
  about: string
}

const name = 'reports'

/** Opens the broker named in the environment: `BROKER` is `memory`, `bullmq` or `rabbitmq`. */
export function openBroker({ BROKER, REDIS_URL, RABBITMQ_URL }: NodeJS.ProcessEnv): Opened {
  const kind = BROKER ?? (REDIS_URL ? 'bullmq' : 'memory')
  const url = REDIS_URL ?? 'redis://localhost'
  if (kind === 'memory') {
    const about = 'in the memory of this process (set REDIS_URL for BullMQ on Redis)'
    return { broker: memoryBroker({ name }), store: memoryStore(), about }
  }
  const store = redisStore(new Redis(url))
  if (kind === 'bullmq') {
    return {
      broker: bullmqBroker({ name, connection: url }),
      store,
      about: 'in Redis, with BullMQ',
    }
  }
  if (kind !== 'rabbitmq') throw new Error(`BROKER is memory, bullmq or rabbitmq, not ${kind}`)
  const connection = RABBITMQ_URL ?? 'amqp://localhost'
  const broker = rabbitmqBroker({ name, connection, store })
  return { broker, store, about: 'in Redis, and delivered by RabbitMQ' }
}
