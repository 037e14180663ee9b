import { setTimeout as sleep } from 'node:timers/promises'
import { createWorker, type QueueEvent, type Settlement } from '@sluice/queue'
import { connect } from 'amqplib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../../support/until.ts'
import { newJob, roomy } from '../broker-bench.ts'
import { expectPoisonGivenUp } from '../proofs/poison-run.ts'
import { RabbitmqBench } from './bench.ts'

const bench = RabbitmqBench.of()
const done: Settlement = { outcome: 'done', result: null }

/** Rejects when a run is to stop. */
function untilAborted(signal: AbortSignal): Promise<string> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
}

describe('a worker over RabbitMQ', () => {
  it('keeps the outcome of a run whose channel was lost, if nobody else has the job', async () => {
    const broker = bench.open()
    const [job, next] = [newJob(), newJob()]
    await broker.enqueue(job, roomy)
    const ran: string[] = []
    const worker = broker.work(
      async ({ id }, signal, delivery) => {
        ran.push(id)
        await delivery.begin()
        if (id === job.id) await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return done
      },
      { concurrency: 1, leaseMs: 60_000, onStalled: () => undefined },
    )
    await until('it runs', () => ran.length === 1)
    // It ends at once, and the worker comes back a little later.
    bench.rabbitmq.control('close_all_connections', 'a test')
    await until('it is done', async () => (await broker.status(job.id))?.state === 'done')
    // The message that is delivered again is before this one, and stands for nothing.
    await until('it accepts jobs', async () => {
      return (await broker.enqueue(next, roomy)).outcome === 'enqueued'
    })
    await until('the next is done', async () => (await broker.status(next.id))?.state === 'done')
    await worker.close()
    expect(ran).toEqual([job.id, next.id])
  })

  it('does not begin a run of a job that ended elsewhere while it was held up', async () => {
    const broker = bench.open()
    const job = newJob()
    await broker.enqueue(job, roomy)
    const begun: string[] = []
    let goOn: (() => void) | undefined
    const options = { concurrency: 1, leaseMs: 60_000, onStalled: () => undefined }
    const slow = broker.work(async (_job, signal, delivery) => {
      if (goOn) return { outcome: 'returned' }
      await new Promise<void>((resolve) => {
        goOn = resolve
      })
      expect(signal.aborted).toBe(true)
      await delivery.begin()
      begun.push('slow')
      return done
    }, options)
    await until('it is held up', () => goOn !== undefined)
    bench.rabbitmq.control('close_all_connections', 'a test')
    const other = bench.open({ name: broker.name })
    const quick = other.work(async (_job, _signal, delivery) => {
      await delivery.begin()
      begun.push('quick')
      return done
    }, options)
    await until('it is done', async () => (await broker.status(job.id))?.state === 'done')
    goOn?.()
    await slow.close()
    await quick.close()
    expect(begun).toEqual(['quick'])
  })

  it('runs jobs of a megabyte, which is more than a frame', async () => {
    const broker = bench.open()
    const text = 'x'.repeat(1_000_000)
    await broker.enqueue(newJob({ payload: text }), roomy)
    const payloads: unknown[] = []
    const worker = createWorker({ broker, handler: ({ payload }) => void payloads.push(payload) })
    await until('it ran', () => payloads.length === 1)
    await worker.close()
    expect(payloads[0]).toBe(text)
  })

  it('drops messages that are none of its queue', async () => {
    const errors: Error[] = []
    const broker = bench.open({ observers: { onError: (error) => errors.push(error) } })
    const job = newJob()
    await broker.enqueue(job, roomy)
    const connection = await connect(bench.rabbitmq.url)
    const channel = await connection.createConfirmChannel()
    channel.sendToQueue(`sluice.${broker.name}`, Buffer.from('hello'))
    channel.sendToQueue(`sluice.${broker.name}`, Buffer.from('{"id":"nobody","number":1}'))
    await channel.waitForConfirms()
    const ran: string[] = []
    const worker = createWorker({ broker, handler: ({ id }) => void ran.push(id) })
    await until('it is told', () => errors.some(({ message }) => /none of Sluice/.test(message)))
    const state = async () => (await channel.checkQueue(`sluice.${broker.name}`)).messageCount
    await until('the queue is empty', async () => (await state()) === 0)
    await until('the job is done', async () => (await broker.status(job.id))?.state === 'done')
    await worker.close()
    expect(ran).toEqual([job.id])
    await connection.close()
  })
})

describe('a run that outlasts the consumer_timeout of RabbitMQ', () => {
  /** Settings that RabbitMQ reads as a channel opens; it looks at its channels once a minute else. */
  function set(settings: string): void {
    bench.rabbitmq.control('eval', `application:set_env([{rabbit, [${settings}]}]).`)
  }

  it('is warned of and told, and its job is delivered again and done once', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    set('{consumer_timeout, 2000}, {channel_tick_interval, 200}')
    onTestFinished(() => set('{consumer_timeout, 1800000}, {channel_tick_interval, 60000}'))
    const errors: string[] = []
    const onError = ({ message }: Error): void => void errors.push(message)
    const broker = bench.open({ observers: { onError }, consumerTimeout: '2s' })
    const job = newJob()
    await broker.enqueue(job, roomy)
    const signals: AbortSignal[] = []
    const events: QueueEvent[] = []
    const worker = createWorker({
      broker,
      handler: (_job, { signal }) => {
        signals.push(signal)
        if (signals.length > 1) return 'second'
        return untilAborted(signal)
      },
      observers: { onEvent: (event) => events.push(event) },
    })
    await until('it is done', async () => (await broker.status(job.id))?.state === 'done')
    await worker.close()
    const warning = /RabbitMQ takes it back after 2000 ms\. Lower the worker's timeout/
    expect(warn).toHaveBeenCalledWith(expect.stringMatching(warning))
    expect(errors).toContainEqual(expect.stringMatching(/PRECONDITION_FAILED.*timed out/))
    expect(signals[0]?.reason).toMatchObject({ name: 'LeaseLost' })
    expect(await broker.status(job.id)).toMatchObject({ result: 'second' })
    const types = events.map(({ type }) => type)
    expect(types.filter((type) => type === 'done')).toHaveLength(1)
  }, 60_000)
})

describe('a job that ends the process of whoever runs it', () => {
  it('is given up after five, and the others run', async () => {
    const { redis, rabbitmq } = bench
    await expectPoisonGivenUp({ redis: redis.url, rabbitmq: rabbitmq.url, name: bench.newName() })
  }, 120_000)
})

describe('a delay', () => {
  it('is kept by RabbitMQ, to a tenth and 100 ms, and nothing is held meanwhile', async () => {
    const broker = bench.open()
    const job = newJob()
    await broker.enqueue(job, roomy)
    const at: number[] = []
    const worker = broker.work(
      async () => {
        at.push(performance.now())
        return at.length === 1 ? { outcome: 'postponed', delayMs: 1_650 } : done
      },
      { concurrency: 1, leaseMs: 30_000, onStalled: () => undefined },
    )
    await until('it is put off', async () => {
      return at.length === 1 && (await broker.status(job.id))?.state === 'pending'
    })
    // The only slot of the worker is free.
    const other = newJob()
    await broker.enqueue(other, roomy)
    await until('the other is done', async () => (await broker.status(other.id))?.state === 'done')
    await until('it is done', async () => (await broker.status(job.id))?.state === 'done')
    await worker.close()
    const [first = 0, , last = 0] = at
    expect(last - first).toBeGreaterThanOrEqual(1_649)
  })
})

describe('a message that is not there', () => {
  const swept = { timeoutMs: 40_000 }

  it('is published after all, if its process died before', async () => {
    const broker = bench.open({ deadlineMs: 1_000 })
    const job = newJob()
    await broker.enqueue(job, roomy)
    const key = `{sluice:${broker.name}}:sluice:unpublished`
    await until('it is confirmed', async () => Number(await bench.redis.cli('ZCARD', key)) === 0)
    bench.rabbitmq.control('purge_queue', `sluice.${broker.name}`)
    await bench.redis.cli('ZADD', key, Date.now() - 20_000, `${job.id}:1`)
    const worker = createWorker({ broker, handler: () => 'done' })
    await until('it is done', async () => (await broker.status(job.id))?.state === 'done', swept)
    await until('it is told', async () => Number(await bench.redis.cli('ZCARD', key)) === 0)
    await worker.close()
  }, 60_000)

  it('is published again, if somebody has deleted the queue', async () => {
    const broker = bench.open()
    const jobs = [newJob(), newJob()]
    for (const job of jobs) await broker.enqueue(job, roomy)
    bench.rabbitmq.control('delete_queue', `sluice.${broker.name}`)
    for (const { id } of jobs) {
      // As if it had waited for minutes.
      await bench.redis.cli('HSET', `{sluice:${broker.name}}:${id}`, 'deliveredAt', 1)
    }
    const worker = createWorker({ broker, handler: () => sleep(1, 'done') })
    for (const { id } of jobs) {
      await until('it is done', async () => (await broker.status(id))?.state === 'done', swept)
    }
    await worker.close()
  }, 60_000)
})
