import { type BullmqBrokerOptions, bullmqBroker, createWorker } from '@sluice/queue'
import { Cluster, Redis } from 'ioredis'
import { createCluster } from 'redis'
import { describe, expect } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { it } from '../support/redis-test.ts'
import { until } from '../support/until.ts'
import { newJob, roomy, TestBench } from './broker-bench.ts'

const observers = { onError: () => undefined }
let count = 0

/** A queue of its own, and its keys. */
function open({ url }: RedisServer) {
  count += 1
  const name = `queue-${count}`
  const broker = bullmqBroker({ connection: url, name, observers, deadlineMs: 15_000 })
  return { bench: new TestBench(broker), key: (part: string) => `bull:${name}:${part}` }
}

const never = (): Promise<never> => new Promise(() => undefined)

describe('a worker over BullMQ', () => {
  it('tells of one end of a job whose lease was lost in a busy event loop', async ({ redis }) => {
    const { bench, key } = open(redis)
    const { id } = await bench.enqueued()
    const told: string[] = []
    let runs = 0
    const worker = bench.worker({
      lease: '1s',
      handler: async () => {
        runs += 1
        if (runs > 1) return 'second'
        await redis.cli('DEL', key(`${id}:lock`))
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
        return 'first'
      },
      observers: { onEvent: ({ type }) => told.push(type) },
    })
    await bench.reaches(id, 'done')
    await until('it is told', () => told.includes('done'))
    await worker.close()
    await bench.has({ id, result: 'second' }, 'the outcome of the run that counts')
    expect(told.filter((type) => type === 'done')).toEqual(['done'])
  })
})

describe('a process that died between taking a place and adding the job', () => {
  it('leaves a place that is taken back, however many jobs have waited for longer', async ({
    redis,
  }) => {
    const { bench, key } = open(redis)
    const longAgo = Date.now() - 200_000
    for (let i = 0; i < 250; i += 1) await bench.enqueued(newJob({ enqueuedAt: longAgo + i }))
    const place = `someone:${newJob().id}`
    await redis.cli('ZADD', key('sluice:places'), Date.now() - 120_000, place)
    await redis.cli('HSET', key('sluice:identities'), 'someone', 1)
    expect(await bench.broker.depth()).toMatchObject({ depth: 251 })
    bench.worker({ handler: never })
    await until('it is swept', async () => (await bench.broker.depth()).depth === 250)
    expect(await redis.cli('HGET', key('sluice:identities'), 'someone')).toBeNull()
  })

  it('leaves an idempotency key by which the job is added after all', async ({ redis }) => {
    const { bench, key } = open(redis)
    const terms = { ...roomy, idempotency: { key: 'order-1', fingerprint: 'a' } }
    const { id } = await bench.enqueued(newJob(), terms)
    // As if it had never been added.
    await redis.cli('DEL', key(id), key('wait'))
    expect(await bench.broker.status(id)).toBeUndefined()
    const known = { outcome: 'known', id }
    expect(await bench.broker.enqueue(newJob(), terms)).toEqual(known)
    expect(await bench.broker.depth()).toMatchObject({ depth: 1 })
    await bench.has({ id, state: 'pending' }, 'a job that is added after all')
    expect(await bench.broker.enqueue(newJob(), terms)).toEqual(known)
  })
})

describe('a broker without Redis', () => {
  it('fails at its deadline, and works when Redis comes', async () => {
    const port = await freePort()
    const connection = `redis://127.0.0.1:${port}`
    const broker = bullmqBroker({ connection, deadlineMs: 200, observers })
    const worker = createWorker({ broker, handler: () => 'done' })
    const refused = broker.enqueue(newJob(), roomy)
    await expect(refused).rejects.toMatchObject({ code: 'SLUICE_BROKER_FAILED' })
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
})

const lazy = { lazyConnect: true, maxRetriesPerRequest: null }

const giving = () => new Redis({ lazyConnect: true })
const prefixed = () => new Redis({ ...lazy, keyPrefix: 'a:' })
const unbraced = () => new Cluster([], { lazyConnect: true, redisOptions: lazy })
const otherCluster = () => createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] })

it.for<[string, () => object, RegExp]>([
  ['none', () => ({}), /^connection\(\) must be a function that creates an ioredis/],
  ['one that gives up', giving, /must create a client with maxRetriesPerRequest: null/],
  ['one with a prefix', prefixed, /^connection\.keyPrefix must be left out/],
  ['a Cluster without braces', unbraced, /^prefix must be in braces for a Cluster/],
  ['a Cluster of node-redis', otherCluster, /must be a function that creates an ioredis Cluster/],
])('a client that cannot be meant is refused: %s', async ([, connection, message]) => {
  const broker = bullmqBroker({ connection, observers } as BullmqBrokerOptions)
  await expect(broker.depth()).rejects.toThrow(message)
  await broker.close()
})
