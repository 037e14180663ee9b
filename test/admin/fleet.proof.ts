import type { AdminOptions } from '@sluice/admin'
import { bullmqBroker, createQueue, createWorker, type Queue } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { startInTest } from '../examples/start-example.ts'
import { freePort } from '../support/free-port.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { it } from '../support/redis-test.ts'
import { until } from '../support/until.ts'
import { type AdminUnderTest, startAdmin } from './admin-server.ts'
import { polled } from './operations.ts'

let server: RedisServer
it.beforeAll(({ redis }) => {
  server = redis
})

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
      const { scope, requests, policies } = (await call('GET', 'live')).body
      const [burst] = policies
      const counted = [requests.allowed + requests.denied, burst.allowed + burst.denied]
      return scope === 'fleet' && counted.every((count) => count === 8)
    })
    const { body } = await call('GET', 'live')
    expect(body.requests).toMatchObject({ allowed: 5, denied: 3 })
    const burst = body.policies.find(({ policy }: { policy: string }) => policy === 'burst')
    expect(burst).toMatchObject({ allowed: 5, denied: 3, nearMisses: 1 })
    const counts = body.latency.map(({ count }: { count: number }) => count)
    expect(counts.reduce((sum: number, count: number) => sum + count, 0)).toBe(8)
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

/** Starts examples/admin, until the test is over. */
async function openExample(env: NodeJS.ProcessEnv) {
  const port = await freePort()
  await startInTest('admin', { PORT: String(port), ...env }).printed(/^Open http:/m)
  const origin = `http://127.0.0.1:${port}`
  const read = async (path: string) => (await fetch(`${origin}/limits${path}`)).text()
  return {
    page: () => read(''),
    live: async () => JSON.parse(await read('/api/v1/live')),
    fleet: async () => JSON.parse(await read('/api/v1/fleet')),
    async login(user: string) {
      const headers = { 'x-user': user }
      return (await fetch(`${origin}/login`, { method: 'POST', headers })).status
    },
  }
}

it('examples/admin shares limits and counts among processes by REDIS_URL', async () => {
  await server.cli('FLUSHALL')
  const env = { REDIS_URL: server.url }
  const [one, two] = await Promise.all([openExample(env), openExample({ ...env, TRAFFIC: 'off' })])
  await until('a login is denied', async () => (await one.login('eve')) === 429)
  await until('the other process denies it too', async () => (await two.login('eve')) === 429)
  expect(await two.page()).toContain('<!doctype html>')
  await until('both are known', async () => (await two.fleet()).instances.length === 2)
  expect((await two.fleet()).store).toMatchObject({ name: 'redis', isAway: false })
  await until('the requests of the other process are counted', async () => {
    const { processes, requests } = await two.live()
    return processes === 2 && requests.denied > 1 && requests.allowed > 0
  })
}, 60_000)

/** How many commands it has carried out, with those within scripts, without the one that asks. */
async function commandsOf({ cli }: RedisServer): Promise<number> {
  const text = String(await cli('INFO', 'commandstats'))
  const found = [...text.matchAll(/^cmdstat_(?!info:)\S+?:calls=(\d+)/gm)]
  return found.reduce((sum, [, calls]) => sum + Number(calls), 0)
}
