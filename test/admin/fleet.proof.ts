import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { type AdminUnderTest, startAdmin } from './admin-server.ts'
import { openExample } from './open-example.ts'
import { polled } from './operations.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** An application with its own connection, as another process has. */
async function join(): Promise<AdminUnderTest> {
  const client = new Redis(server.url)
  await client.flushall()
  onTestFinished(() => client.disconnect())
  return startAdmin({ store: redisStore(client) })
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

it('an open page costs at most five commands of Redis a second, in any number of tabs', async () => {
  const { call, policies, visit } = await join()
  await visit('ada')
  await until('the process is known', async () => (await policies.status()).fleet.length > 0)
  const openTabs = () =>
    Promise.all(
      Array.from({ length: 10 }, () => polled.map(({ path }) => call('GET', path))).flat(),
    )
  await openTabs()
  const before = await commandsOf(server)
  const startedMs = performance.now()
  const realNow = performance.now.bind(performance)
  const turns = 15
  let aheadMs = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => realNow() + aheadMs)
  onTestFinished(() => clock.mockRestore())
  for (let turn = 0; turn < turns; turn += 1) {
    aheadMs += 2_000
    const answers = await openTabs()
    for (const { status } of answers) expect(status).toBe(200)
  }
  const seconds = (performance.now() - startedMs) / 1_000
  expect(seconds).toBeGreaterThanOrEqual(2 * turns)
  const after = await commandsOf(server)
  const asked = new Map([...after].map(([name, count]) => [name, count - (before.get(name) ?? 0)]))
  const all = [...asked].filter(([name]) => name !== 'info').reduce((sum, [, n]) => sum + n, 0)
  // With what the process asks by itself: its heartbeat, its policies, and its reports.
  expect(all / seconds, JSON.stringify([...asked])).toBeLessThanOrEqual(5)
})

it('examples/admin shares limits and counts among processes by REDIS_URL', async () => {
  await server.cli('FLUSHALL')
  const env = { REDIS_URL: server.url }
  const [one, two] = await Promise.all([openExample(env), openExample({ ...env, TRAFFIC: 'off' })])
  await until('a login is denied', async () => (await one.login('eve')) === 429)
  expect(await two.login('eve')).toBe(429)
  expect(await two.page()).toContain('<!doctype html>')
  await until('both are known', async () => (await two.fleet()).instances.length === 2)
  expect((await two.fleet()).store).toMatchObject({ name: 'redis', isAway: false })
  await until('the requests of the other process are counted', async () => {
    const { processes, requests } = await two.live()
    return processes === 2 && requests.denied > 1 && requests.allowed > 0
  })
}, 60_000)

/** Calls of each command since the server started. */
async function commandsOf({ cli }: RedisServer): Promise<ReadonlyMap<string, number>> {
  const text = String(await cli('INFO', 'commandstats'))
  const found = [...text.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)]
  return new Map(found.map(([, name = '', calls]) => [name, Number(calls)]))
}
