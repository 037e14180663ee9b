import type { AdminOptions } from '@sluice/admin'
import { bullmqBroker, createQueue, createWorker, type Queue } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { RedisServer } from '../support/redis-server.ts'
import { redisOfFile } from '../support/redis-test.ts'
import { until } from '../support/until.ts'
import { type AdminUnderTest, startAdmin } from './admin-server.ts'
import { polled } from './operations.ts'

const { redis: server } = await redisOfFile()

async function join(admin?: AdminOptions): Promise<AdminUnderTest> {
  const client = new Redis(server.url)
  await client.flushall()
  onTestFinished(() => client.disconnect())
  return startAdmin({ store: redisStore(client), ...(admin && { admin }) })
}

async function queueWithDeadLetters(count: number) {
  const broker = bullmqBroker({ connection: server.url, name: 'jobs' })
  const queue = createQueue({ broker })
  const handler = () => Promise.reject(new Error('the printer is away'))
  const worker = createWorker({ broker, attempts: 1, handler })
  for (let job = 0; job < count; job += 1) await queue.enqueue({ identity: 'ada', payload: job })
  await until('all are dead letters', async () => (await queue.depth()).dead === count)
  await worker.close()
  onTestFinished(() => broker.close())
  return queue
}

it('the live counts and the busiest keys are those of all processes', async () => {
  const [one, two] = [await join(), await join()]
  for (const { call } of [one, two]) {
    await until('the processes have heard of each other', async () => {
      return (await call('GET', 'live')).body.processes === 2
    })
  }
  for (let i = 0; i < 4; i += 1) await one.visit('ada')
  for (let i = 0; i < 4; i += 1) await two.visit('ada')
  for (const { call } of [one, two]) {
    await until('all processes are added up', async () => {
      const { scope, requests } = (await call('GET', 'live')).body
      return scope === 'fleet' && requests.allowed === 5 && requests.denied === 3
    })
    const top = await call('GET', 'top?policy=burst&by=asked')
    expect(top.body.lists).toMatchObject([{ scope: 'fleet', keys: [{ count: 8 }] }])
  }
}, 60_000)

describe('an open page in ten tabs', () => {
  it('costs at most five commands of Redis a second, with those within scripts', async () => {
    const { call, policies, visit } = await join()
    await visit('ada')
    await until('the process is known', async () => (await policies.status()).fleet.length > 0)
    const paths = polled.map(({ path }) => path)
    await readIn(10, paths, call)
    const before = await commandsOf(server)
    const seconds = await pollFor(30, () => readIn(10, paths, call))
    const after = await commandsOf(server)
    // With what the process asks by itself: its heartbeat, its policies, and its reports.
    expect((after - before) / seconds).toBeLessThanOrEqual(5)
  }, 60_000)

  it('sends Redis at most five commands a second for a queue with dead letters too', async () => {
    const queues: Queue[] = []
    const { call, visit } = await join({ queues })
    queues.push(await queueWithDeadLetters(30))
    await visit('ada')
    const dead = 'queues/jobs/dead?limit=50'
    expect((await call('GET', dead)).body.jobs).toHaveLength(30)
    const paths = [dead, ...polled.map(({ path }) => path)].filter((path) => !path.endsWith('=5'))
    await readIn(10, paths, call)
    const watcher = new Redis(server.url)
    const monitor = await watcher.monitor()
    onTestFinished(() => monitor.disconnect())
    onTestFinished(() => watcher.disconnect())
    const sent: string[] = []
    monitor.on('monitor', (_time: string, [name = '']: string[], source: string) => {
      if (source !== 'lua') sent.push(name)
    })
    const seconds = await pollFor(60, () => readIn(10, paths, call))
    await until('the last command is seen', async () => {
      await watcher.echo('seen')
      return sent.includes('echo')
    })
    // The texts of the jobs.
    expect(sent).toContain('lrange')
    expect(sent.length / seconds, sent.join(' ')).toBeLessThanOrEqual(5)
  }, 60_000)
})

async function readIn(tabs: number, paths: readonly string[], call: AdminUnderTest['call']) {
  const all = Array.from({ length: tabs }, () => paths).flat()
  const answers = await Promise.all(all.map((path) => call('GET', path)))
  for (const { status } of answers) expect(status).toBe(200)
}

/** Polls every two seconds of a clock that is set. @returns the seconds that have passed */
async function pollFor(seconds: number, poll: () => Promise<void>): Promise<number> {
  const realNow = performance.now.bind(performance)
  const startedMs = realNow()
  let aheadMs = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => realNow() + aheadMs)
  onTestFinished(() => clock.mockRestore())
  while (aheadMs < seconds * 1_000) {
    aheadMs += 2_000
    await poll()
  }
  return (realNow() + aheadMs - startedMs) / 1_000
}

/** How many commands it has carried out, with those within scripts, without the one that asks. */
async function commandsOf({ cli }: RedisServer): Promise<number> {
  const text = String(await cli('INFO', 'commandstats'))
  const found = [...text.matchAll(/^cmdstat_(?!info:)\S+?:calls=(\d+)/gm)]
  return found.reduce((sum, [, calls]) => sum + Number(calls), 0)
}
