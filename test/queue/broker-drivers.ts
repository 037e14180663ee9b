import { type Broker, bullmqBroker, memoryBroker } from '@sluice/queue'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

/** How the brokers are made for tests, each a queue of its own. */
export interface BrokerDriver {
  readonly name: string
  start?(): Promise<void>
  stop?(): Promise<void>
  /** @param maxDeadLetters as in the options */
  make(maxDeadLetters?: number): Broker
  /** Another broker of the same queue, as in another process. */
  twin?(broker: Broker): Broker
}

export const memoryDriver: BrokerDriver = {
  name: 'memory',
  make: (maxDeadLetters = 10_000) => memoryBroker({ maxDeadLetters }),
}

export function bullmqDriver(): BrokerDriver {
  let redis: RedisServer | undefined
  let count = 0
  const connection = (): string => redis?.url ?? ''
  return {
    name: 'BullMQ',
    async start() {
      redis = await startRedis()
    },
    async stop() {
      await redis?.stop()
    },
    make(maxDeadLetters = 10_000) {
      count += 1
      return bullmqBroker({ connection: connection(), name: `queue-${count}`, maxDeadLetters })
    },
    twin: ({ name }) => bullmqBroker({ connection: connection(), name }),
  }
}
