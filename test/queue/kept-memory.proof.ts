import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Duration } from '@sluice/core'
import { type Broker, bullmqBroker, createQueue, createWorker, memoryBroker } from '@sluice/queue'
import { describe, expect, it, onTestFinished } from 'vitest'
import { raise } from '../support/raise.ts'
import { startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const payload = 'x'.repeat(90_000)
const megabyte = 1_000_000
/** Longer than a slow machine needs for the jobs of a test, so that all of them are kept when the last has ended. */
const retention = '10s'

/** Enqueues as fast as there is room, until all jobs have ended. */
async function runAll(
  broker: Broker,
  { jobs, retention, handler }: { jobs: number; retention: Duration; handler: () => unknown },
) {
  const queue = createQueue({ broker, maxDepth: 20, maxDepthPerIdentity: 20, retention })
  const worker = createWorker({ broker, handler, attempts: 1, concurrency: 20 })
  for (let i = 0; i < jobs; ) {
    const { outcome } = await queue.enqueue({ identity: 'a', payload })
    if (outcome === 'enqueued') i += 1
    else await sleep(2)
  }
  await until('all have ended', async () => (await queue.depth()).depth === 0, {
    timeoutMs: 60_000,
  })
  await worker.close()
}

describe('the memory that ended jobs take in Redis', { timeout: 90_000 }, () => {
  async function setUp(options = {}) {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const broker = bullmqBroker({ connection: redis.url, deadlineMs: 10_000, ...options })
    onTestFinished(() => broker.close())
    const used = async (): Promise<number> => {
      return Number(/used_memory:(\d+)/.exec(String(await redis.cli('INFO', 'memory')))?.[1])
    }
    return { redis, broker, used }
  }

  it('is not that of their payloads', async () => {
    const { redis, broker, used } = await setUp()
    await redis.cli('CONFIG', 'SET', 'maxmemory', '20mb')
    await runAll(broker, { jobs: 400, retention: '1h', handler: () => 'done' })
    expect(await used()).toBeLessThan(10 * megabyte)
  })

  it.each([
    ['results', () => payload],
    ['dead letters', () => raise('never')],
  ])('is as much as it may be: %s', async (_what, handler) => {
    const { redis, broker, used } = await setUp({ maxKeptBytes: 5 * megabyte })
    await redis.cli('CONFIG', 'SET', 'maxmemory', '20mb')
    await runAll(broker, { jobs: 300, retention: '1h', handler })
    const before = await used()
    expect(before).toBeLessThan(12 * megabyte)
    expect(before).toBeGreaterThan(5 * megabyte)
  })

  it('is given back on time, whoever is there to see to it', async () => {
    const { broker, used, redis } = await setUp()
    const empty = await used()
    await runAll(broker, { jobs: 100, retention, handler: () => payload })
    expect(await used()).toBeGreaterThan(empty + 5 * megabyte)
    await broker.close()
    await until('it is free', async () => (await used()) < empty + 3 * megabyte)
    const jobs = async () => String(await redis.cli('KEYS', 'bull:jobs:????????-*'))
    await until('no job is left', async () => (await jobs()) === '')
  })

  it('is about what is counted for each', async () => {
    const { broker, used, redis } = await setUp()
    const queue = createQueue({ broker, maxDepth: 1_000, maxDepthPerIdentity: 1_000 })
    const worker = createWorker({ broker, handler: () => 'done', concurrency: 50 })
    onTestFinished(() => worker.close())
    const run = async (first: number, next: number): Promise<number> => {
      for (let i = first; i < next; i += 1) {
        await queue.enqueue({ identity: 'a', payload: i, idempotencyKey: `order-${i}` })
      }
      await until('all have ended', async () => (await queue.depth()).depth === 0)
      return used()
    }
    // Scripts and connections are there from the first job on.
    const before = await run(0, 500)
    const each = ((await run(500, 1_500)) - before) / 1_000
    const bytes = 'bull:jobs:sluice:kept:completed:bytes'
    const counted = Number(await redis.cli('HGET', bytes, '')) / 1_500
    expect(each).toBeLessThan(counted * 1.2)
    expect(each).toBeGreaterThan(counted * 0.6)
  })
})

describe('the memory that ended jobs take in a process', { timeout: 90_000 }, () => {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')

  function heap(): number {
    if (typeof collect === 'function') collect()
    return process.memoryUsage().heapUsed
  }

  it('is not that of their payloads', async () => {
    const broker = memoryBroker()
    onTestFinished(() => broker.close())
    const before = heap()
    await runAll(broker, { jobs: 1_000, retention: '1h', handler: () => 'done' })
    expect(heap() - before).toBeLessThan(20 * megabyte)
  })

  it('is given back on time, though nobody asks, of each queue', async () => {
    const broker = memoryBroker()
    onTestFinished(() => broker.close())
    await runAll(broker, { jobs: 1, retention: '1h', handler: () => 'done' })
    const before = heap()
    await runAll(broker, { jobs: 200, retention, handler: () => `${Math.random()}${payload}` })
    expect(heap() - before).toBeGreaterThan(10 * megabyte)
    await until('it is free', async () => heap() - before < 5 * megabyte)
  })
})
