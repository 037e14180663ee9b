import { auditStream, createOutbound } from '@sluice/outbound'
import { bullmqBroker, createWorker } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { newJob, roomy } from './new-job.ts'

async function setUp() {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const client = new Redis(redis.url)
  onTestFinished(() => client.disconnect())
  const broker = bullmqBroker({ connection: redis.url, observers: { onError: () => undefined } })
  onTestFinished(() => broker.close())
  return { redis, client, broker, store: redisStore(client) }
}

describe('workers over BullMQ', () => {
  it('return what waits for the rate when they close, and another takes it at once', async () => {
    const { broker, store } = await setUp()
    const ran: unknown[] = []
    const options = { broker, store, limit: 1, window: '1s', lease: '1m' } as const
    const handler = async ({ payload }: { payload: unknown }) => void ran.push(payload)
    const worker = createWorker({ ...options, handler })
    for (let i = 0; i < 3; i += 1) await broker.enqueue(newJob({ payload: i }), roomy)
    await until('two wait', async () => ran.length === 1 && worker.waiting === 2)
    await worker.close()
    expect(await broker.depth()).toMatchObject({ depth: 2, running: 0 })
    const other = createWorker({ ...options, handler })
    await until('all ran', async () => ran.length === 3)
    await other.close()
    expect([...ran].sort()).toEqual([0, 1, 2])
  })

  it('tell a handler that its job is cancelled from another process', async () => {
    const { redis, broker } = await setUp()
    const elsewhere = bullmqBroker({ connection: redis.url })
    onTestFinished(() => elsewhere.close())
    const job = newJob()
    await broker.enqueue(job, roomy)
    const worker = createWorker({
      broker,
      handler: (_job, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    })
    await until('it runs', async () => worker.running === 1)
    expect(await elsewhere.cancel(job.id)).toBe('cancelling')
    await until(
      'it has stopped',
      async () => (await elsewhere.status(job.id))?.state === 'cancelled',
    )
    expect(await broker.depth()).toMatchObject({ depth: 0 })
    await worker.close()
  })

  it('run a job again whose event loop was held up, when its lease is over', async () => {
    const { redis, broker } = await setUp()
    const job = newJob()
    await broker.enqueue(job, roomy)
    const stalled: string[] = []
    const signals: AbortSignal[] = []
    const worker = createWorker({
      broker,
      lease: '1s',
      handler: async (_job, { signal }) => {
        signals.push(signal)
        if (signals.length > 1) return
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      },
      observers: {
        onEvent: (event) => {
          if (event.type === 'stalled') stalled.push(event.id)
        },
      },
    })
    await until('it runs', async () => worker.running === 1)
    // What a worker that is gone leaves behind: no lock.
    await redis.cli('DEL', `bull:jobs:${job.id}:lock`)
    await until('it is taken back', async () => stalled.length > 0)
    // Its place is free a moment before.
    await until('it has ended', async () => (await broker.status(job.id))?.state !== 'running')
    expect(await broker.status(job.id)).toMatchObject({ error: undefined, state: 'done' })
    expect(signals[0]?.reason).toMatchObject({ name: 'LeaseLost' })
    expect(signals.at(-1)?.aborted).toBe(false)
    await worker.close()
  })
})

describe('a worker whose lease is lost', () => {
  it.each([
    ['as its event loop is held up, and nobody could tell it', true],
    ['and which was told, but has finished all the same', false],
  ])('tells of one end of a job, %s', async (_how, isHeldUp) => {
    const { redis, broker } = await setUp()
    const job = newJob()
    await broker.enqueue(job, roomy)
    const told: string[] = []
    let runs = 0
    const worker = createWorker({
      broker,
      lease: '1s',
      handler: async (_job, { signal }) => {
        runs += 1
        if (runs > 1) return 'second'
        await redis.cli('DEL', `bull:jobs:${job.id}:lock`)
        if (isHeldUp) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
        else await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return 'first'
      },
      observers: { onEvent: ({ type }) => told.push(type) },
    })
    await until('it has ended', async () => (await broker.status(job.id))?.state === 'done')
    await until('it is told', async () => told.includes('done'))
    await worker.close()
    expect(await broker.status(job.id)).toMatchObject({ result: 'second' })
    expect(told.filter((type) => type === 'done')).toEqual(['done'])
  })
})

describe('a process that died between taking a place and adding the job', () => {
  it('leaves a place that is taken back, however many jobs have waited for longer', async () => {
    const { redis, broker } = await setUp()
    const longAgo = Date.now() - 200_000
    for (let i = 0; i < 250; i += 1) {
      await broker.enqueue(newJob({ enqueuedAt: longAgo + i }), roomy)
    }
    const { id } = newJob()
    await redis.cli('ZADD', 'bull:jobs:sluice:places', Date.now() - 120_000, `someone:${id}`)
    await redis.cli('HSET', 'bull:jobs:sluice:identities', 'someone', 1)
    const worker = createWorker({ broker, handler: () => new Promise(() => undefined) })
    await until('it is swept', async () => (await broker.depth()).depth === 250)
    expect(await redis.cli('HGET', 'bull:jobs:sluice:identities', 'someone')).toBeNull()
    await worker.close({ grace: 1 })
  })

  it('leaves a place that is taken back', async () => {
    const { redis, broker } = await setUp()
    const { id } = newJob()
    await redis.cli('ZADD', 'bull:jobs:sluice:places', Date.now() - 120_000, `someone:${id}`)
    await redis.cli('HSET', 'bull:jobs:sluice:identities', 'someone', 1)
    const waits = newJob()
    await broker.enqueue(waits, roomy)
    expect(await broker.depth()).toMatchObject({ depth: 2 })
    const worker = createWorker({ broker, handler: () => new Promise(() => undefined) })
    await until('it is swept', async () => (await broker.depth()).depth === 1)
    expect(await redis.cli('HGET', 'bull:jobs:sluice:identities', 'someone')).toBeNull()
    await worker.close({ grace: 1 })
  })

  it('leaves an idempotency key by which the job is added after all', async () => {
    const { redis, broker } = await setUp()
    const terms = { ...roomy, idempotency: { key: 'order-1', fingerprint: 'a' } }
    const job = newJob()
    await broker.enqueue(job, terms)
    // As if it had never been added.
    await redis.cli('DEL', `bull:jobs:${job.id}`, 'bull:jobs:wait')
    expect(await broker.status(job.id)).toBeUndefined()
    expect(await broker.enqueue(newJob(), terms)).toEqual({ outcome: 'known', id: job.id })
    expect(await broker.depth()).toMatchObject({ depth: 1 })
    expect(await broker.status(job.id)).toMatchObject({ state: 'pending' })
    expect(await broker.enqueue(newJob(), terms)).toEqual({ outcome: 'known', id: job.id })
  })
})

describe('a broker without Redis', () => {
  it('fails at its deadline, and works when Redis comes', async () => {
    const port = await freePort()
    const connection = `redis://127.0.0.1:${port}`
    const broker = bullmqBroker({
      connection,
      deadlineMs: 200,
      observers: { onError: () => undefined },
    })
    const worker = createWorker({ broker, handler: () => 'done' })
    await expect(broker.enqueue(newJob(), roomy)).rejects.toMatchObject({
      code: 'SLUICE_BROKER_FAILED',
    })
    await using _redis = await startRedis({ port })
    const job = newJob()
    await until('it is enqueued', async () => {
      const { outcome } = await broker.enqueue(job, roomy)
      return outcome === 'enqueued' || outcome === 'known'
    })
    await until('it is done', async () => (await broker.status(job.id))?.state === 'done')
    await worker.close()
    await broker.close()
  })

  it('is closed without ever having been there', async () => {
    const connection = `redis://127.0.0.1:${await freePort()}`
    const broker = bullmqBroker({
      connection,
      deadlineMs: 100,
      observers: { onError: () => undefined },
    })
    await broker.depth().catch(() => undefined)
    await broker.close()
  })
})

describe('the options of a BullMQ broker', () => {
  it.each([
    ['no connection', {}, /^connection must be/],
    ['no URL', { connection: 'localhost' }, /^connection must be/],
    [
      'a client',
      { connection: new Redis({ lazyConnect: true }) },
      /^connection must be .* not a client/,
    ],
    ['a name', { connection: {}, name: 'a:b' }, /^name must be/],
    ['a deadline', { connection: {}, deadlineMs: 0 }, /^deadlineMs must be/],
    ['a prefix', { connection: {}, prefix: '' }, /^prefix must be/],
    [
      'a prefix of the client',
      { connection: { keyPrefix: 'a:' } },
      /^connection\.keyPrefix must be left out/,
    ],
    [
      'an observer',
      { connection: {}, observers: { onError: 'log' } },
      /^observers\.onError must be a function/,
    ],
    ['outcomes', { connection: {}, maxKept: 0.5 }, /^maxKept must be/],
    ['dead letters', { connection: {}, maxDeadLetters: -1 }, /^maxDeadLetters must be/],
    ['an option', { connection: {}, queue: 'jobs' }, /there is no option 'queue'/],
  ])('are refused where they cannot be meant: %s', (_what, options, message) => {
    expect(() => bullmqBroker(options as { connection: string })).toThrow(message)
  })
})

describe('the client that a BullMQ broker is made of', () => {
  it.each([
    ['none', () => ({}), /^connection\(\) must be a function that makes a client/],
    [
      'one that gives up',
      () => new Redis({ lazyConnect: true }),
      /must make a client with maxRetriesPerRequest: null/,
    ],
    [
      'one with a prefix',
      () => new Redis({ lazyConnect: true, maxRetriesPerRequest: null, keyPrefix: 'a:' }),
      /^connection\.keyPrefix must be left out/,
    ],
    [
      'a Cluster without braces',
      () => new Cluster([], { lazyConnect: true, redisOptions: { maxRetriesPerRequest: null } }),
      /^prefix must be a text in braces for a Cluster/,
    ],
    [
      'a Cluster of node-redis',
      () => createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] }),
      /^connection\(\) must be a function that makes a Cluster of ioredis/,
    ],
  ])('is refused where it cannot be meant: %s', async (_what, connection, message) => {
    const broker = bullmqBroker({ connection, observers: { onError: () => undefined } })
    await expect(broker.depth()).rejects.toThrow(message)
    await broker.close()
  })
})

describe('an audit trail in Redis', () => {
  it.each(['ioredis', 'node-redis'])('has who called what, and is capped: %s', async (library) => {
    const { redis, store } = await setUp()
    const client = library === 'ioredis' ? new Redis(redis.url) : createClient({ url: redis.url })
    if (client instanceof Redis) onTestFinished(() => client.disconnect())
    else {
      await client.connect()
      onTestFinished(() => client.destroy())
    }
    const outbound = createOutbound({
      name: 'crm',
      limits: [{ limit: 1_000, window: '1s' }],
      store,
      by: 'process-1',
      observers: auditStream({ client, maxKept: 10 }),
    })
    for (let i = 0; i < 220; i += 1) await outbound.schedule(async () => i, { label: 'sync' })
    await until('it is written', async () => Number(await redis.cli('XLEN', 'sluice:outbound')) > 0)
    expect(Number(await redis.cli('XLEN', 'sluice:outbound'))).toBeLessThan(220)
    const [entry] = (await redis.cli('XREVRANGE', 'sluice:outbound', '+', '-', 'COUNT', 1)) as [
      [string, string[]],
    ]
    expect(entry[1].map(String)).toEqual(
      expect.arrayContaining([
        'outbound',
        'crm',
        'by',
        'process-1',
        'label',
        'sync',
        'cost',
        '1',
        'answer',
        'ok',
      ]),
    )
    await outbound.close()
  })
})
