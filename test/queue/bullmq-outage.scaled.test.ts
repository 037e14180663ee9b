import { setTimeout as sleep } from 'node:timers/promises'
import { type BullmqBrokerOptions, bullmqBroker, type QueueEvent } from '@sluice/queue'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { scaled } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { newJob, roomy, TestBench } from './broker-bench.ts'

type Connected = (url: string) => BullmqBrokerOptions['connection']

const byUrl: Connected = (url) => url
const byIoredis: Connected = (url) => () => new Redis(url, { maxRetriesPerRequest: null })
const byNodeRedis: Connected = (url) => () => createClient({ url })

const failed = { code: 'SLUICE_BROKER_FAILED' }
const idempotency = { key: 'order-1', fingerprint: 'a' }

function open(options: Pick<BullmqBrokerOptions, 'connection' | 'deadlineMs' | 'observers'>) {
  const bench = new TestBench(bullmqBroker({ observers: { onError: () => undefined }, ...options }))
  return { bench, broker: bench.broker }
}

async function setUp(deadlineMs = 2_000, connected = byUrl) {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const opened = open({ connection: connected(redis.url), deadlineMs })
  await until('it is connected', async () => (await opened.broker.depth()).depth === 0)
  return { redis, ...opened }
}

/** Clients of ioredis that carry out a command of the broker in their own way. */
function withOwn(command: string, how: (carryOut: () => Promise<unknown>) => Promise<unknown>) {
  return (url: string) => () => {
    const client = new Redis(url, { maxRetriesPerRequest: null })
    const define = client.defineCommand.bind(client)
    client.defineCommand = (name, definition) => {
      define(name, definition)
      if (!name.startsWith(command)) return
      const carryOut: unknown = Reflect.get(client, name)
      if (typeof carryOut !== 'function') throw new Error(`there is no ${name}`)
      const own = (...args: unknown[]) => how(async () => carryOut.apply(client, args))
      Reflect.set(client, name, own)
    }
    return client
  }
}

describe('a broker whose Redis is frozen', () => {
  it('leaves nothing behind that it did not answer for, and works at once when Redis goes on', async () => {
    const { redis, broker } = await setUp(300)
    redis.pause()
    const asked = Array.from({ length: 500 }, () => broker.enqueue(newJob(), roomy))
    const answers = await Promise.allSettled(asked)
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(0)
    redis.resume()
    const isBack = async () => (await broker.enqueue(newJob(), roomy)).outcome === 'enqueued'
    await until('it works', isBack)
    await until('what was late is undone', async () => (await broker.depth()).depth === 1)
    expect(Number(await redis.cli('LLEN', 'bull:jobs:wait'))).toBe(1)
  })

  it.each([byUrl, byNodeRedis])('does nothing later that it refused (%#)', async (connected) => {
    const { redis, bench, broker } = await setUp(1_000, connected)
    const dead = await bench.enqueued()
    const worker = bench.work(async () => ({ outcome: 'dead', error: 'no' }), 1)
    await bench.reaches(dead.id, 'failed')
    await worker.close()
    const waiting = await bench.enqueued()
    redis.pause()
    const controls = [broker.cancel(waiting.id), broker.retry(dead.id), broker.forget(dead.id)]
    for (const control of controls) {
      await expect(control).rejects.toMatchObject({ code: 'SLUICE_NOT_DONE' })
    }
    redis.resume()
    await until('it works', async () => (await broker.depth()).depth >= 0)
    await bench.has({ id: waiting.id, state: 'pending' }, 'a job whose cancellation was refused')
    await bench.has({ id: dead.id, state: 'failed' }, 'a dead letter whose retry was refused')
    expect(await broker.cancel(waiting.id)).toBe('cancelled')
    expect(await broker.forget(dead.id)).toBe(true)
  })

  it('carries out no change after its deadline that was on the way', async () => {
    const server: { redis?: RedisServer } = {}
    const connected = withOwn('sluiceQueue:bullmq/time', async (readTime) => {
      const reply = await readTime()
      server.redis?.pause()
      await sleep(10)
      return reply
    })
    const { redis, bench, broker } = await setUp(1_000, connected)
    const { id } = await bench.enqueued()
    server.redis = redis
    await expect(broker.cancel(id)).rejects.toMatchObject({ code: 'SLUICE_UNANSWERED' })
    delete server.redis
    redis.resume()
    await until('it works', async () => (await broker.depth()).depth >= 0)
    await bench.has({ id, state: 'pending' }, 'a job whose cancellation was not answered')
  })

  it('counts the end of a run once, although the first answer to it was lost', async () => {
    let calls = 0
    const connected = withOwn('sluiceQueue:put-back', async (putBack) => {
      const reply = await putBack()
      calls += 1
      if (calls === 1) throw new Error('the connection was lost')
      return reply
    })
    const { redis, bench } = await setUp(2_000, connected)
    const { id } = await bench.enqueued()
    const worker = bench.work(async (_job, _signal, { begin }) => {
      await begin()
      return { outcome: 'postponed', delayMs: 60_000, pausesWorker: false }
    }, 1)
    await until('it is put back', async () => calls === 2)
    await worker.close()
    expect(await redis.cli('HGET', `bull:jobs:${id}`, 'sluice:starts')).toBe('0')
  })

  it('asks it for little while it does not answer, and lets nobody wait', async () => {
    const { redis, broker } = await setUp(200)
    redis.pause()
    await Promise.allSettled(Array.from({ length: 300 }, () => broker.enqueue(newJob(), roomy)))
    const reasons: string[] = []
    for (let i = 0; i < 200; i += 1) {
      const error: unknown = await broker.enqueue(newJob(), roomy).catch((reason) => reason)
      expect(error).toMatchObject(failed)
      reasons.push(String(error))
    }
    // All others are probes, which wait for their deadline.
    const atOnce = reasons.filter((reason) => reason.endsWith('the broker does not answer'))
    expect(atOnce.length).toBeGreaterThan(150)
    redis.resume()
    await until('it works', async () => (await broker.depth()).depth === 0)
    const stats = String(await redis.cli('INFO', 'commandstats'))
    // 100 asks of two commands each, and what little came later.
    expect(Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)).toBeLessThan(500)
  })
})

describe('an enqueue that is refused though its job is added', () => {
  const late = async (add: () => Promise<unknown>) => {
    await sleep(200)
    return add()
  }

  it('withdraws the job where nobody waits any more', async () => {
    let isAdded = false
    const adding = withOwn('addStandardJob', async (add) => {
      const answer = await late(add)
      isAdded = true
      return answer
    })
    const { broker } = await setUp(100, adding)
    const job = newJob()
    await expect(broker.enqueue(job, roomy)).rejects.toMatchObject(failed)
    await until('the job is added', () => isAdded)
    await until('its place is free', async () => (await broker.depth()).depth === 0)
    expect(await broker.status(job.id)).toBeUndefined()
  })

  const thenFails = async (add: () => Promise<unknown>) => {
    await add()
    throw new Error('Command timed out')
  }

  it.each([
    ['after its deadline', 100, late],
    ['before it fails', 2_000, thenFails],
  ])('keeps a job with a key that is added %s, and its place', async (_when, deadlineMs, how) => {
    const { bench, broker } = await setUp(deadlineMs, withOwn('addStandardJob', how))
    const job = newJob()
    const terms = { ...roomy, idempotency }
    await expect(broker.enqueue(job, terms)).rejects.toMatchObject(failed)
    await bench.reaches(job.id, 'pending')
    expect(await broker.enqueue(newJob(), terms)).toEqual({ outcome: 'known', id: job.id })
    expect(await broker.depth()).toMatchObject({ depth: 1 })
  })
})

const connections = Object.entries({ url: byUrl, ioredis: byIoredis, 'node-redis': byNodeRedis })

const frozen = (redis: RedisServer) => redis.pause()
const gone = (redis: RedisServer) => redis.kill()
const failures = [
  ['is frozen', frozen, true],
  ['is gone', gone, true],
  ['is frozen, and nobody has closed its worker', frozen, false],
] as const

// Each ends by its deadlines, some three seconds, or the test runs out of time.
describe.each(connections.slice(0, scaled(1, 3)))('closing without Redis: %s', (_, connected) => {
  const endless = { handler: () => new Promise(() => undefined), lease: '1s' } as const

  it('ends where it never was', async () => {
    const connection = connected(`redis://127.0.0.1:${await freePort()}`)
    const { bench, broker } = open({ connection })
    await bench.worker(endless).close({ grace: 100 })
    await broker.close()
  })

  const tried = failures.slice(0, scaled(1, 3))
  it.each(tried)('ends while it %s', async (_how, fail, isWorkerClosed) => {
    const { redis, bench, broker } = await setUp(2_000, connected)
    await bench.enqueued()
    const worker = bench.worker(endless)
    await until('it runs', async () => (await broker.depth()).running === 1)
    await fail(redis)
    if (isWorkerClosed) await worker.close({ grace: 100 })
    await broker.close()
  })
})

it('errors that are none of a job use up none of its attempts', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const errors: Error[] = []
  const onError = (error: Error): void => void errors.push(error)
  const { bench } = open({ connection: redis.url, observers: { onError } })
  const { id } = await bench.enqueued()
  // What every script fails at that wants the places: as out of memory, or loading.
  await redis.cli('RENAME', 'bull:jobs:sluice:places', 'aside')
  await redis.cli('SET', 'bull:jobs:sluice:places', 'no places')
  const events: QueueEvent[] = []
  const attempts: number[] = []
  bench.worker({
    attempts: 1,
    handler: ({ attempt }) => void attempts.push(attempt),
    observers: { onEvent: (event) => events.push(event) },
  })
  await until('it was tried some times', () => errors.length >= 3)
  await redis.cli('RENAME', 'aside', 'bull:jobs:sluice:places')
  await bench.reaches(id, 'done')
  expect(attempts).toEqual([1])
  expect(events.map(({ type }) => type)).toEqual(['started', 'done'])
})
