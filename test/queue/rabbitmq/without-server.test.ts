import { createWorker } from '@sluice/queue'
import { rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { stepOf } from '../../../packages/queue/src/brokers/rabbitmq/publisher.ts'
import { freePort } from '../../support/free-port.ts'
import { newJob, roomy } from '../broker-bench.ts'

const store = redisStore(new Redis({ lazyConnect: true }))
const connection = 'amqp://127.0.0.1:1'
const quiet = { observers: { onError: () => undefined } }

describe('a broker without RabbitMQ', () => {
  it('refuses jobs at once with what is wrong, and closes', async () => {
    const connection = `amqp://ada:secret@127.0.0.1:${await freePort()}`
    const broker = rabbitmqBroker({ connection, store, ...quiet })
    const error: unknown = await broker.enqueue(newJob(), roomy).catch((reason) => reason)
    expect(error).toMatchObject({ code: 'SLUICE_BROKER_FAILED' })
    const what =
      /RabbitMQ at amqp:\/\/127.0.0.1:\d+: .*ECONNREFUSED.*check that the server is running/
    expect(String(error)).toMatch(what)
    expect(String(error)).not.toContain('secret')
    await createWorker({ broker, handler: () => 'done' }).close({ grace: 1 })
    await broker.close()
    const late = broker.enqueue(newJob(), roomy)
    await expect(late).rejects.toMatchObject({ code: 'SLUICE_BROKER_CLOSED' })
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
  ] as const)('of %s, patience %s, is warned of: %s', async (timeout, patience, isWarned) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    const own = { name: `patience-${timeout}-${patience}`, consumerTimeout: patience }
    const broker = rabbitmqBroker({ connection, store, ...quiet, ...own })
    const worker = createWorker({ broker, timeout, handler: () => 'done' })
    const isOfTimeout = ([text]: unknown[]) => String(text).includes('consumer_timeout')
    expect(warn.mock.calls.filter(isOfTimeout)).toHaveLength(isWarned ? 1 : 0)
    await worker.close({ grace: 1 })
    await broker.close()
  })
})

describe('a delay', () => {
  it('is made of steps that exceed it by a tenth and 100 ms at most', () => {
    for (const delayMs of [0, 1, 99, 100, 101, 460, 950, 1_700, 59_000, 90_000, 9_999_999]) {
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
