import { bullmqBroker, memoryBroker } from '@sluice/queue'
import { rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'

describe('the bounds of what is kept', () => {
  const store = redisStore(new Redis({ lazyConnect: true }))
  const brokers = [
    memoryBroker,
    (options = {}) => bullmqBroker({ connection: {}, ...options }),
    (options = {}) => rabbitmqBroker({ connection: 'amqp://localhost', store, ...options }),
  ]

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, null, '5'])('are not %j', (wrong) => {
    for (const make of brokers) {
      for (const option of ['maxKept', 'maxDeadLetters', 'maxKeptBytes']) {
        const message = new RegExp(`^${option} must be a whole number from 0 to`)
        expect(() => make({ [option]: wrong })).toThrow(message)
      }
    }
  })

  it('may be 0', () => {
    for (const make of brokers) expect(() => make({ maxKeptBytes: 0 })).not.toThrow()
  })
})
