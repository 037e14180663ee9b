import { setTimeout as sleep } from 'node:timers/promises'
import { bullmqBroker, createWorker } from '@sluice/queue'
import { expect, it } from 'vitest'
import { startRedis } from '../../support/redis-server.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { until } from '../../support/until.ts'
import { newJob, roomy } from '../broker-bench.ts'
import { killRun } from './kill-run.ts'
import { outboundRun } from './outbound-run.ts'

it('loses no job when workers are killed, exceeds no rate, and repeats only what was interrupted', async () => {
  const report = await killRun({ workers: 3, jobs: 250, kills: 3, limit: 60 })
  expect(report).toMatchObject({ done: 250, unexplained: 0 })
  expect(report.mostInOneSecond).toBeLessThanOrEqual(report.bound)
}, 60_000)

it('loses no job that was accepted when a Redis with an AOF crashes and comes back', async () => {
  using folder = temporaryFolder('aof')
  const args = ['--appendonly', 'yes', '--appendfsync', 'always', '--dir', folder.path]
  const redis = await startRedis({ args })
  const { port, url } = redis
  const observers = { onError: () => undefined }
  const broker = bullmqBroker({ connection: url, observers, deadlineMs: 500 })
  const runs = new Set<string>()
  const worker = createWorker({
    broker,
    concurrency: 2,
    lease: '1s',
    async handler({ id }) {
      await sleep(10)
      runs.add(id)
    },
  })
  const accepted: string[] = []
  const enqueue = async (): Promise<void> => {
    const job = newJob()
    try {
      if ((await broker.enqueue(job, roomy)).outcome === 'enqueued') accepted.push(job.id)
    } catch {
      // Not accepted: whether it runs is open.
    }
  }
  for (let i = 0; i < 150; i += 1) await enqueue()
  const crash = redis.kill()
  await Promise.all(Array.from({ length: 20 }, enqueue))
  await crash
  await using _again = await startRedis({ args, port })
  await until('jobs are accepted again', async () => {
    await enqueue()
    return accepted.length >= 190
  })
  const allRan = () => accepted.every((id) => runs.has(id))
  await until('all have run', allRan, { timeoutMs: 30_000 })
  await worker.close()
  await until('the queue is empty', async () => (await broker.depth()).depth === 0)
  await broker.close()
}, 60_000)

it('accepts exactly as many of 10,000 jobs as it has places, in the same memory', async () => {
  await using redis = await startRedis()
  const brokers = [0, 1].map(() => bullmqBroker({ connection: redis.url, deadlineMs: 30_000 }))
  const terms = { ...roomy, maxDepth: 1_000 }
  const enqueue = async (from: number, to: number): Promise<string[]> => {
    const jobs = Array.from({ length: to - from }, () => newJob())
    const asked = jobs.map((job, i) => brokers[i % 2]?.enqueue(job, terms))
    return (await Promise.all(asked)).map((answer) => answer?.outcome ?? '')
  }
  const outcomes = await enqueue(0, 2_000)
  const before = await usedMemory(redis)
  for (let from = 2_000; from < 10_000; from += 2_000) {
    outcomes.push(...(await enqueue(from, from + 2_000)))
  }
  expect(outcomes.filter((outcome) => outcome === 'enqueued')).toHaveLength(1_000)
  expect(outcomes.filter((outcome) => outcome === 'full')).toHaveLength(9_000)
  expect(await brokers[0]?.depth()).toMatchObject({ depth: 1_000 })
  expect((await usedMemory(redis)) - before).toBeLessThan(200_000)
  for (const broker of brokers) await broker.close()
}, 60_000)

it('never calls a third party too often, from any process, though calls overtake each other, and uses its quota', async () => {
  // A machine may be busy for most of a second: a process that is held up for a window cannot keep its units.
  const plan = { processes: 4, seconds: 6, limit: 40, windowMs: 2_000, latencyMs: 40 }
  const { violations, used } = await outboundRun(plan)
  expect(violations).toBe(0)
  // The processes begin one by one, and the machine may be busy: the long form demands 0.85.
  expect(used).toBeGreaterThan(0.6)
}, 60_000)

it('never calls a third party too often though Redis is killed in mid-run, and comes back empty', async () => {
  const plan = { processes: 3, seconds: 12, limit: 20, windowMs: 1_500, latencyMs: 600 }
  const outages = { count: 2, awayMs: 300 }
  const { violations, resumedAfterMs } = await outboundRun({ ...plan, outages })
  expect(violations).toBe(0)
  expect(resumedAfterMs).toHaveLength(2)
}, 60_000)

async function usedMemory(redis: { cli(...args: string[]): Promise<unknown> }): Promise<number> {
  return Number(/used_memory_dataset:(\d+)/.exec(String(await redis.cli('INFO', 'memory')))?.[1])
}
