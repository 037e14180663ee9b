import type { Broker } from '@sluice/queue'
import { createWorker } from '@sluice/queue'
import { connect } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { tlsFront } from '../../support/tls-front.ts'
import { until } from '../../support/until.ts'
import { newJob, roomy } from '../broker-bench.ts'
import { rabbitmqBench } from './bench.ts'

const bench = rabbitmqBench()
const failed = { code: 'SLUICE_BROKER_FAILED' }

async function connected(deadlineMs = 500): Promise<Broker> {
  const broker = bench.open({ deadlineMs })
  const job = newJob()
  await until('it is connected', async () => {
    const idempotency = { key: 'first', fingerprint: '' }
    return (await broker.enqueue(job, { ...roomy, idempotency })).outcome !== 'full'
  })
  const unpublished = `{sluice:${broker.name}}:sluice:unpublished`
  await until('it is confirmed', async () => {
    return Number(await bench.redis.cli('ZCARD', unpublished)) === 0
  })
  expect(await broker.cancel(job.id).catch(() => 'unknown')).toBeTypeOf('string')
  await until('it is empty', async () => (await broker.depth()).depth === 0)
  return broker
}

async function refusedAll(broker: Broker): Promise<readonly string[]> {
  const asked = Array.from({ length: 200 }, () => broker.enqueue(newJob(), roomy))
  return (await Promise.allSettled(asked)).map((answer) => {
    expect(answer).toMatchObject({ status: 'rejected', reason: failed })
    return answer.status === 'rejected' ? String(answer.reason) : ''
  })
}

async function worksAgain(broker: Broker): Promise<void> {
  const accepted: string[] = []
  const accepts = async () => {
    const job = newJob()
    const isAccepted = (await broker.enqueue(job, roomy)).outcome === 'enqueued'
    if (isAccepted) accepted.push(job.id)
    return isAccepted
  }
  await until('it accepts jobs', accepts, { timeoutMs: 40_000 })
  const ran: string[] = []
  const worker = createWorker({ broker, handler: ({ id }) => void ran.push(id) })
  const isEmpty = async () => (await broker.depth()).depth === 0
  await until('the queue is empty', isEmpty, { timeoutMs: 40_000 })
  await worker.close()
  // Nothing else was left behind.
  expect(ran.sort()).toEqual(accepted.sort())
}

describe.each([
  ['RabbitMQ', () => [bench.rabbitmq]],
  ['Redis', () => [bench.redis]],
  ['RabbitMQ and Redis', () => [bench.rabbitmq, bench.redis]],
] as const)('while %s is frozen', (_what, servers) => {
  it('refuses jobs at the deadline, leaves none behind, and goes on by itself', async () => {
    const broker = await connected()
    for (const server of servers()) server.pause()
    try {
      expect((await refusedAll(broker)).join()).toMatch(/within 500 ms|does not answer|is lost/)
      await expect(broker.enqueue(newJob(), roomy)).rejects.toMatchObject(failed)
    } finally {
      for (const server of servers()) server.resume()
    }
    await worksAgain(broker)
  }, 90_000)
})

describe('a RabbitMQ that blocks publishers', () => {
  it('is said to do so at once, and takes jobs again when it can', async () => {
    const errors: string[] = []
    const onError = ({ message }: Error): void => void errors.push(message)
    const broker = bench.open({ deadlineMs: 1_500, observers: { onError } })
    await broker.enqueue(newJob(), roomy)
    bench.rabbitmq.control('set_vm_memory_high_watermark', '0.0000001')
    try {
      // It tells a connection when that publishes.
      await broker.enqueue(newJob(), roomy).catch(() => undefined)
      await until('it is told', () => errors.some((text) => /blocked: low on memory/.test(text)))
      await expect(broker.enqueue(newJob(), roomy)).rejects.toMatchObject({
        ...failed,
        message: expect.stringMatching(/accepts no messages at the moment: low on memory/),
      })
    } finally {
      bench.rabbitmq.control('set_vm_memory_high_watermark', '0.4')
    }
    await until('it accepts jobs', async () => {
      return (await broker.enqueue(newJob(), roomy)).outcome === 'enqueued'
    })
  }, 60_000)
})

describe('what a server refuses', () => {
  async function refusal(connection: string, name = bench.newName()): Promise<string> {
    const broker = bench.open({ connection, name })
    const error: unknown = await broker.enqueue(newJob(), roomy).catch((reason) => reason)
    expect(error).toMatchObject(failed)
    return String(error)
  }

  it('is said with its reason, and without a password', async () => {
    const { rabbitmq } = bench
    const place = `127.0.0.1:${rabbitmq.port}`
    rabbitmq.control('add_vhost', 'foreign')
    rabbitmq.control('add_user', 'ada', 'secret')
    rabbitmq.control('set_permissions', 'ada', '^$', '.*', '.*')
    const wrong = await refusal(`amqp://ada:wrong@${place}`)
    expect(wrong).toMatch(/check the user name and the password/)
    expect(wrong).not.toMatch(/wrong/)
    for (const host of ['foreign', 'nowhere']) {
      const refused = await refusal(`amqp://ada:secret@${place}/${host}`)
      expect(refused).toMatch(/no permissions in the virtual host/)
    }
    expect(await refusal(`amqp://ada:secret@${place}`)).toMatch(/needs configure, write and read/)
    expect(await refusal(`amqps://${place}`)).toMatch(/does not use TLS|TLS only with amqps/)
  }, 60_000)

  it('is said of a certificate that nobody trusts, which the connection may bring along', async () => {
    await using front = await tlsFront(bench.rabbitmq.port)
    const url = `amqps://localhost:${front.port}`
    expect(await refusal(url)).toMatch(/self.signed.*amqplib\.connect\(url, \{ ca \}\)/)
    const trusting = bench.open({ connection: () => connect(url, { ca: [front.ca] }) })
    expect(await trusting.enqueue(newJob(), roomy)).toMatchObject({ outcome: 'enqueued' })
  }, 60_000)

  it('is said of a queue that exists with other arguments', async () => {
    const name = bench.newName()
    const connection = await connect(bench.rabbitmq.url)
    const channel = await connection.createChannel()
    await channel.assertQueue(`sluice.${name}`, { durable: true })
    await connection.close()
    const text = await refusal(bench.rabbitmq.url, name)
    expect(text).toMatch(/inequivalent arg 'x-/)
    expect(text).toMatch(/the queue exists with other arguments/)
  })
})

describe('without RabbitMQ', () => {
  it('jobs can be looked up and cancelled all the same', async () => {
    const broker = bench.open()
    const job = newJob()
    await broker.enqueue(job, roomy)
    await bench.rabbitmq.kill()
    await until('it is told', async () => {
      const error: unknown = await broker.enqueue(newJob(), roomy).catch((reason) => reason)
      return error instanceof Error && /ECONN/.test(error.message)
    })
    expect(await broker.status(job.id)).toMatchObject({ state: 'pending' })
    expect(await broker.cancel(job.id)).toBe('cancelled')
    expect(await broker.depth()).toMatchObject({ depth: 0 })
  })
})
