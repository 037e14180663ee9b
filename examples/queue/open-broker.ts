import { memoryStore, type Store } from '@sluice/core'
import { type Broker, bullmqBroker, memoryBroker } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

export interface Opened {
  /** Where jobs are kept. */
  broker: Broker
  /** Where limits are counted: connections of its own, since BullMQ's wait for ever and a limiter's must not. */
  store: Store
  about: string
}

/** BullMQ on Redis where there is a URL, else the memory of this process. */
export function openBroker(url: string | undefined): Opened {
  if (!url) {
    const about = 'in the memory of this process (set REDIS_URL for BullMQ on Redis)'
    return { broker: memoryBroker({ name: 'reports' }), store: memoryStore(), about }
  }
  return {
    broker: bullmqBroker({ name: 'reports', connection: url }),
    store: redisStore(new Redis(url)),
    about: 'in Redis, by BullMQ',
  }
}
