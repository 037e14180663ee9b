import { memoryStore } from '@sluice/core'
import { bullmqBroker, memoryBroker } from '@sluice/queue'
import { rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'

const store = redisStore(new Redis({ lazyConnect: true }))
const amqp = { connection: 'amqp://127.0.0.1:1', store }
const log = { onError: 'log' }

type Make = (options: object) => unknown

const makers: Readonly<Record<string, [make: Make, least: object]>> = {
  memory: [memoryBroker, {}],
  BullMQ: [bullmqBroker as Make, { connection: {} }],
  RabbitMQ: [rabbitmqBroker as Make, amqp],
}

describe.each(Object.entries(makers))('the options of a %s broker', (_broker, [make, least]) => {
  const wrongs = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, null, '5']
  it.each(wrongs)('have no bound of %j', (wrong) => {
    for (const option of ['maxKept', 'maxDeadLetters', 'maxKeptBytes']) {
      const message = new RegExp(`^${option} must be a whole number from 0 to`)
      expect(() => make({ ...least, [option]: wrong })).toThrow(message)
    }
  })

  it('may have a bound of 0', () => {
    expect(() => make({ ...least, maxKeptBytes: 0 })).not.toThrow()
  })
})

it.each<[broker: string, what: string, options: object, message: RegExp]>([
  ['BullMQ', 'no connection', { connection: undefined }, /^connection must be/],
  ['BullMQ', 'no URL', { connection: 'localhost' }, /^connection must be/],
  ['BullMQ', 'a client', { connection: new Redis({ lazyConnect: true }) }, /must be .* not a cli/],
  ['BullMQ', 'a name', { name: 'a:b' }, /^name must be/],
  ['BullMQ', 'a deadline', { deadlineMs: 0 }, /^deadlineMs must be/],
  ['BullMQ', 'a prefix', { prefix: '' }, /^prefix must be/],
  ['BullMQ', 'keyPrefix', { connection: { keyPrefix: 'a:' } }, /^connection\.keyPrefix must be/],
  ['BullMQ', 'an observer', { observers: log }, /^observers\.onError must be a function/],
  ['BullMQ', 'an option', { queue: 'jobs' }, /there is no option 'queue'/],
  ['RabbitMQ', 'no connection', { connection: undefined }, /^connection must be an amqp:/],
  ['RabbitMQ', 'no URL', { connection: 'localhost' }, /^connection must be/],
  ['RabbitMQ', 'another server', { connection: 'redis://localhost' }, /^connection must be/],
  ['RabbitMQ', 'a connection', { connection: { createConfirmChannel: 1 } }, /^connection must be/],
  ['RabbitMQ', 'no store', { store: undefined }, /^store must be a Redis store: redisStore/],
  ['RabbitMQ', 'a store in memory', { store: memoryStore() }, /^store must be a Redis store/],
  ['RabbitMQ', 'a name', { name: 'a:b' }, /^name must be/],
  ['RabbitMQ', 'a prefix', { prefix: '{a}' }, /^prefix must be 1 to 100 letters/],
  ['RabbitMQ', 'a deadline', { deadlineMs: 0 }, /^deadlineMs must be/],
  ['RabbitMQ', 'a timeout', { consumerTimeout: 'soon' }, /^consumerTimeout must be/],
  ['RabbitMQ', 'an observer', { observers: log }, /^observers\.onError must be a function/],
  ['RabbitMQ', 'an option', { queue: 'jobs' }, /there is no option 'queue'/],
])('a %s broker refuses what cannot be meant: %s', (broker, _what, options, message) => {
  const [make, least] = makers[broker] ?? []
  expect(() => make?.({ ...least, ...options })).toThrow(message)
})

it('a RabbitMQ broker never shows a password', () => {
  const make = () => rabbitmqBroker({ ...amqp, connection: 'http://ada:secret@localhost' })
  expect(make).toThrow(/^connection must be/)
  expect(make).not.toThrow(/secret/)
})
