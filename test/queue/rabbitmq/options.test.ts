import { memoryStore } from '@sluice/core'
import { createWorker } from '@sluice/queue'
import { rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { stepOf } from '../../../packages/queue/src/brokers/rabbitmq/publisher.ts'
import { freePort } from '../../support/free-port.ts'
import { newJob, roomy } from '../new-job.ts'

const store = redisStore(new Redis({ lazyConnect: true }))
const connection = 'amqp://127.0.0.1:1'
const quiet = { observers: { onError: () => undefined } }

describe('the options of a RabbitMQ broker', () => {
  it.each([
    ['no connection', { store }, /^connection must be an amqp:/],
    ['no URL', { connection: 'localhost', store }, /^connection must be/],
    ['a URL of another server', { connection: 'redis://localhost', store }, /^connection must be/],
    ['a connection', { connection: { createConfirmChannel: 1 }, store }, /^connection must be/],
    ['no store', { connection }, /^store must be a store in Redis: redisStore\(client\)/],
    ['a store in memory', { connection, store: memoryStore() }, /^store must be a store in Redis/],
    ['a name', { connection, store, name: 'a:b' }, /^name must be/],
    ['a prefix', { connection, store, prefix: '{a}' }, /^prefix must be 1 to 100 letters/],
    ['a deadline', { connection, store, deadlineMs: 0 }, /^deadlineMs must be/],
    ['a timeout', { connection, store, consumerTimeout: 'soon' }, /^consumerTimeout must be/],
    [
      'an observer',
      { connection, store, observers: { onError: 'log' } },
      /^observers\.onError must be a function/,
    ],
    ['an option', { connection, store, queue: 'jobs' }, /there is no option 'queue'/],
  ])('are refused where they cannot be meant: %s', (_what, options, message) => {
    const given: unknown = options
    expect(() => rabbitmqBroker(given as Parameters<typeof rabbitmqBroker>[0])).toThrow(message)
  })

  it('never show a password', () => {
    const make = () => rabbitmqBroker({ connection: 'http://ada:secret@localhost', store })
    expect(make).toThrow(/^connection must be/)
    expect(make).not.toThrow(/secret/)
  })
})

describe('a broker without RabbitMQ', () => {
  it('refuses jobs at once with what is wrong, and closes', async () => {
    const port = await freePort()
    const broker = rabbitmqBroker({
      ...{ connection: `amqp://ada:secret@127.0.0.1:${port}`, store, ...quiet },
    })
    const error: unknown = await broker.enqueue(newJob(), roomy).catch((reason) => reason)
    expect(error).toMatchObject({
      code: 'SLUICE_BROKER_FAILED',
      message: expect.stringMatching(
        /RabbitMQ at amqp:\/\/127.0.0.1:\d+: .*ECONNREFUSED.*is the server there\?/,
      ),
    })
    expect(String(error)).not.toContain('secret')
    const worker = createWorker({ broker, handler: () => 'done' })
    await worker.close({ grace: 1 })
    await broker.close()
    await expect(broker.enqueue(newJob(), roomy)).rejects.toMatchObject({
      code: 'SLUICE_BROKER_CLOSED',
    })
  })

  it('says so if its function makes no connection', async () => {
    const broker = rabbitmqBroker({ connection: async () => ({}), store, ...quiet })
    await expect(broker.enqueue(newJob(), roomy)).rejects.toThrow(/^connection\(\) must be/)
    await broker.close()
  })
})

describe('a worker whose runs may outlast the patience of RabbitMQ', () => {
  it.each([
    ['1790s', '30m', false],
    ['1795s', '30m', true],
    ['1795s', '2h', false],
  ] as const)(
    'of %s with a consumer timeout of %s is warned of: %s',
    async (timeout, consumerTimeout, isWarned) => {
      const warn = vi.spyOn(console, 'warn').mockReturnValue()
      onTestFinished(() => warn.mockRestore())
      const name = `patience-${timeout}-${consumerTimeout}`
      const broker = rabbitmqBroker({
        connection,
        store,
        name,
        ...quiet,
        consumerTimeout,
      })
      const worker = createWorker({ broker, timeout, handler: () => 'done' })
      const warnings = warn.mock.calls
        .flat()
        .filter((text) => String(text).includes('consumer_timeout'))
      expect(warnings).toHaveLength(isWarned ? 1 : 0)
      await worker.close({ grace: 1 })
      await broker.close()
    },
  )
})

describe('a delay', () => {
  it('is made of steps that exceed it by a tenth and 100 ms at most', () => {
    for (const delayMs of [
      0, 1, 99, 100, 101, 460, 950, 1_700, 59_000, 90_000, 3_500_000, 9_999_999,
    ]) {
      let waited = 0
      let steps = 0
      while (waited < delayMs) {
        waited += stepOf(delayMs - waited)
        steps += 1
      }
      expect(waited).toBeLessThanOrEqual(delayMs * 1.1 + 100)
      expect(steps).toBeLessThanOrEqual(12)
    }
  })
})
