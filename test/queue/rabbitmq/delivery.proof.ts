import { setTimeout as sleep } from 'node:timers/promises'
import type { QueueEvent } from '@sluice/queue'
import { connect } from 'amqplib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../../support/until.ts'
import { done, newJob, untilAborted } from '../broker-bench.ts'
import { expectPoisonGivenUp } from '../proofs/poison-run.ts'
import { alone, rabbitmqBench } from './bench.ts'

const servers = rabbitmqBench()

describe('a worker over RabbitMQ', () => {
  it('keeps the outcome of a run whose channel was lost, if nobody else has the job', async () => {
    const bench = servers.newBench()
    const job = await bench.enqueued()
    const ran: string[] = []
    const worker = bench.broker.work(async ({ id }, signal, delivery) => {
      await delivery.begin()
      ran.push(id)
      if (id === job.id) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return done
    }, alone)
    await until('it runs', () => ran.length === 1)
    // It ends at once, and the worker comes back a little later.
    servers.loseChannels()
    await bench.reaches(job.id, 'done')
    // The message that is delivered again is before this one, and stands for nothing.
    const next = newJob()
    await until('it accepts jobs', async () => (await bench.enqueued(next)) === next)
    await bench.reaches(next.id, 'done')
    await worker.close()
    expect(ran).toEqual([job.id, next.id])
  })

  it('does not begin a run of a job that ended elsewhere while it was held up', async () => {
    const bench = servers.newBench()
    const { id } = await bench.enqueued()
    const begun: string[] = []
    let goOn: (() => void) | undefined
    const slow = bench.broker.work(async (_job, signal, delivery) => {
      if (goOn) return { outcome: 'returned' }
      await new Promise<void>((resolve) => {
        goOn = resolve
      })
      expect(signal.aborted).toBe(true)
      await delivery.begin()
      begun.push('slow')
      return done
    }, alone)
    await until('it is held up', () => goOn !== undefined)
    servers.loseChannels()
    const other = servers.open({ name: bench.broker.name })
    const quick = other.work(async (_job, _signal, delivery) => {
      await delivery.begin()
      begun.push('quick')
      return done
    }, alone)
    await bench.reaches(id, 'done')
    goOn?.()
    await slow.close()
    await quick.close()
    expect(begun).toEqual(['quick'])
  })

  it('runs jobs of a megabyte, which is more than a frame', async () => {
    const bench = servers.newBench()
    const text = 'x'.repeat(1_000_000)
    await bench.enqueued(newJob({ payload: text }))
    const payloads: unknown[] = []
    bench.worker({ handler: ({ payload }) => void payloads.push(payload) })
    await until('it ran', () => payloads.length === 1)
    expect(payloads[0]).toBe(text)
  })

  it('drops messages that are none of its queue', async () => {
    const errors: Error[] = []
    const bench = servers.newBench({ observers: { onError: (error) => errors.push(error) } })
    const { id } = await bench.enqueued()
    const queue = `sluice.${bench.broker.name}`
    const connection = await connect(servers.rabbitmq.url)
    onTestFinished(() => connection.close())
    const channel = await connection.createConfirmChannel()
    for (const text of ['hello', '{"id":"nobody","number":1}']) {
      channel.sendToQueue(queue, Buffer.from(text))
    }
    await channel.waitForConfirms()
    const ran: string[] = []
    bench.worker({ handler: (job) => void ran.push(job.id) })
    await until('it is told', () => errors.some(({ message }) => /not from Sluice/.test(message)))
    const count = async () => (await channel.checkQueue(queue)).messageCount
    await until('the queue is empty', async () => (await count()) === 0)
    await bench.reaches(id, 'done')
    expect(ran).toEqual([id])
  })
})

describe('a run that outlasts the consumer_timeout of RabbitMQ', () => {
  /** Settings that RabbitMQ reads as a channel opens; it looks at its channels once a minute else. */
  function set(settings: string): void {
    servers.rabbitmq.control('eval', `application:set_env([{rabbit, [${settings}]}]).`)
  }

  it('is warned of and told, and its job is delivered again and done once', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    set('{consumer_timeout, 2000}, {channel_tick_interval, 200}')
    onTestFinished(() => set('{consumer_timeout, 1800000}, {channel_tick_interval, 60000}'))
    const errors: string[] = []
    const onError = ({ message }: Error): void => void errors.push(message)
    const bench = servers.newBench({ observers: { onError }, consumerTimeout: '2s' })
    const { id } = await bench.enqueued()
    const signals: AbortSignal[] = []
    const events: QueueEvent[] = []
    const worker = bench.worker({
      handler: (_job, { signal }) => {
        signals.push(signal)
        if (signals.length > 1) return 'second'
        return untilAborted(signal)
      },
      observers: { onEvent: (event) => events.push(event) },
    })
    await bench.reaches(id, 'done')
    await worker.close()
    const warning = /RabbitMQ takes it back after 2000 ms\. Lower the worker's timeout/
    expect(warn).toHaveBeenCalledWith(expect.stringMatching(warning))
    expect(errors).toContainEqual(expect.stringMatching(/PRECONDITION_FAILED.*timed out/))
    expect(signals[0]?.reason).toMatchObject({ name: 'LeaseLost' })
    await bench.has({ id, result: 'second' }, 'the outcome of the run that counts')
    expect(events.map(({ type }) => type).filter((type) => type === 'done')).toHaveLength(1)
  }, 60_000)
})

describe('a job that ends the process of whoever runs it', () => {
  it('is given up after five, and the others run', async () => {
    const { redis, rabbitmq, newName } = servers
    await expectPoisonGivenUp({ redis: redis.url, rabbitmq: rabbitmq.url, name: newName() })
  }, 120_000)
})

describe('a message that is not there', () => {
  it('is published after all, if its process died before', async () => {
    const bench = servers.newBench({ deadlineMs: 1_000 })
    const { id } = await bench.enqueued()
    const key = `{sluice:${bench.broker.name}}:sluice:unpublished`
    const confirmed = async () => Number(await servers.redis.cli('ZCARD', key)) === 0
    await until('it is confirmed', confirmed)
    servers.rabbitmq.control('purge_queue', `sluice.${bench.broker.name}`)
    await servers.redis.cli('ZADD', key, Date.now() - 20_000, `${id}:1`)
    bench.worker({ handler: () => 'done' })
    await bench.reaches(id, 'done')
    await until('it is told', confirmed)
  }, 60_000)

  it('is published again, if somebody has deleted the queue', async () => {
    const bench = servers.newBench()
    const jobs = [await bench.enqueued(), await bench.enqueued()]
    servers.rabbitmq.control('delete_queue', `sluice.${bench.broker.name}`)
    for (const { id } of jobs) {
      // As if it had waited for minutes.
      await servers.redis.cli('HSET', `{sluice:${bench.broker.name}}:${id}`, 'deliveredAt', 1)
    }
    bench.worker({ handler: () => sleep(1, 'done') })
    for (const { id } of jobs) await bench.reaches(id, 'done')
  }, 60_000)
})
