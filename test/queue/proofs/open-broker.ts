import { type Broker, bullmqBroker, type Job, type JobState } from '@sluice/queue'
import { rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { until } from '../../support/until.ts'

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

const atOnce = 100

/** States of jobs, once none runs. A job's place is free a moment before it is `done`. */
export async function endStates(broker: Broker, jobs: readonly Pick<Job, 'id'>[]) {
  const states: (JobState | undefined)[] = []
  // A broker has a deadline for each look-up, so few wait at once.
  for (let from = 0; from < jobs.length; from += atOnce) {
    const some = jobs.slice(from, from + atOnce)
    await until('no job runs', async () => {
      const found = await Promise.all(some.map(async ({ id }) => (await broker.status(id))?.state))
      states.splice(from, atOnce, ...found)
      return !found.includes('running')
    })
  }
  return states
}
