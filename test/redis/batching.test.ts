import { setImmediate as tick } from 'node:timers/promises'
import type { Limiter, StoreErrorEvent } from '@sluice/core'
import { type RedisStoreOptions, redisStore } from '@sluice/redis'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { callsOf, redisOfFile } from '../support/redis-test.ts'

const { redis: server, client: redis } = await redisOfFile()

beforeAll(async () => {
  // Redis knows the script from now on, so that each call is one command.
  const store = redisStore(redis, { heartbeatMs: 0 })
  await patientLimiter({ store, limit: 1, window: '1m' }).consume('warm')
})

beforeEach(async () => void (await redis.flushall()))

/** A client whose calls go to a real Redis, each when the test lets it. */
function gatedClient() {
  return {
    /** Calls that were sent, and wait at the gate. */
    held: [] as { release(error?: Error): void }[],
    /** Keys of the calls so far. */
    sent: [] as number[],
    /** Whether calls wait; before, they go on at once. */
    isGated: false,
    defineCommand: () => undefined,
    async call(command: string, ...args: (string | Buffer)[]): Promise<unknown> {
      if (!this.isGated) return redis.call(command, ...args)
      this.sent.push(Number(args[1]))
      await new Promise<void>((resolve, reject) => {
        this.held.push({ release: (error) => (error ? reject(error) : resolve()) })
      })
      return redis.call(command, ...args)
    },
  }
}

/** Enough ticks for what a reply sets off, in the client and behind it. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i += 1) {
    await tick()
    await redis.ping()
  }
}

let opened = 0

/** With a store that has asked Redis before: while it asks for the first time, everything waits for that. */
async function open(options: RedisStoreOptions = {}) {
  const client = gatedClient()
  const errors: StoreErrorEvent[] = []
  opened += 1
  const store = redisStore(client, { heartbeatMs: 0, prefix: `batch${opened}`, ...options })
  const limiter: Limiter = patientLimiter({
    store,
    limit: 1_000,
    window: '1m',
    failureMode: 'closed',
    observers: { onStoreError: (event) => errors.push(event) },
  })
  const both = [limiter, patientLimiter({ store, name: 'short', limit: 10, window: '1m' })]
  for (const one of both) await one.consume('warm')
  await limiter.reset('warm')
  client.isGated = true
  return { client, store, limiter, errors }
}

describe('requests', () => {
  it('are sent at the end of their tick, in as many calls as may be under way', async () => {
    const { client, limiter } = await open()
    const all = Array.from({ length: 10 }, (_, i) => limiter.consume(`k${i}`))
    await Promise.resolve()
    expect(client.sent).toEqual([3, 3, 2, 2])
    for (const call of client.held.splice(0)) call.release()
    expect((await Promise.all(all)).every(({ allowed }) => allowed)).toBe(true)
    void Promise.all([limiter.consume('a'), limiter.consume('b')])
    await Promise.resolve()
    expect(client.sent).toEqual([3, 3, 2, 2, 2])
  })

  it('wait for an answer when all calls are under way, and then travel together, in order', async () => {
    const { client, limiter } = await open({ batch: { maxInFlight: 1 } })
    const order: string[] = []
    const ask = (key: string) => limiter.consume(key).then(() => order.push(key))
    const first = ask('first')
    await tick()
    const others: Promise<unknown>[] = []
    for (const key of ['b', 'c', 'd', 'e']) {
      others.push(ask(key))
      await tick()
    }
    expect(client.sent).toEqual([1])
    client.held.shift()?.release()
    await first
    await settle()
    expect(client.sent).toEqual([1, 4])
    client.held.shift()?.release()
    await Promise.all(others)
    expect(order).toEqual(['first', 'b', 'c', 'd', 'e'])
  })

  it('take a call that is free, in full calls at most, and no more calls than may be under way', async () => {
    const { client, limiter } = await open({ batch: { maxKeys: 10, maxInFlight: 3 } })
    const all = [limiter.consume('first')]
    await tick()
    for (let i = 0; i < 4; i += 1) all.push(limiter.consume(`few${i}`))
    await tick()
    expect(client.sent).toEqual([1, 2, 2])
    for (let i = 0; i < 40; i += 1) all.push(limiter.consume(`k${i}`))
    await tick()
    expect(client.sent).toEqual([1, 2, 2])
    // One slow call holds up nothing but itself and the place that it takes.
    client.held.splice(1, 1)[0]?.release()
    await settle()
    expect(client.sent).toEqual([1, 2, 2, 10])
    while (client.held.length > 0) {
      for (const call of client.held.splice(0)) call.release()
      await settle()
    }
    expect(client.sent.slice(3).every((keys) => keys <= 10)).toBe(true)
    expect(client.sent.reduce((sum, keys) => sum + keys, 0)).toBe(45)
    expect((await Promise.all(all)).every(({ allowed }) => allowed)).toBe(true)
  })

  it('of one call that fails fail alone, each with its reason', async () => {
    const { client, limiter, errors } = await open({ batch: { maxKeys: 2, maxInFlight: 3 } })
    const all = ['a', 'b', 'c', 'd', 'e', 'f'].map((key) => limiter.consume(key))
    await tick()
    expect(client.sent).toEqual([2, 2, 2])
    client.held[0]?.release()
    client.held[1]?.release(new Error('connection reset'))
    client.held[2]?.release()
    const decisions = await Promise.all(all)
    const sources = ['store', 'store', 'closed', 'closed', 'store', 'store']
    expect(decisions.map(({ source }) => source)).toEqual(sources)
    expect(errors.map(({ error }) => error.code)).toEqual(Array(2).fill('SLUICE_REDIS_CONNECTION'))
  })

  it('of several lists of policies travel in calls of their own; what settles something keeps its place', async () => {
    const { client, store } = await open({ batch: { maxInFlight: 1 } })
    const ours = patientLimiter({ store, name: 'ours', limit: 2, window: '1m' })
    const theirs = patientLimiter({ store, name: 'theirs', limit: 9, window: '1m' })
    const before = [ours.consume('k'), theirs.consume('a'), ours.consume('l'), theirs.consume('b')]
    const peek = ours.peek('k')
    const after = [ours.consume('k'), theirs.consume('c')]
    await tick()
    expect(client.sent).toEqual([2, 2, 1, 1, 1])
    for (const call of client.held.splice(0)) call.release()
    expect((await peek).outcomes[0]?.remaining).toBe(1)
    const decisions = await Promise.all([...before, ...after])
    expect(decisions.every(({ allowed }) => allowed)).toBe(true)
  })
})

describe('the commands inside a call', () => {
  /** How often scripts called Redis since the statistics were reset. */
  async function innerCalls(): Promise<number> {
    const stats = await redis.info('commandstats')
    return [...stats.matchAll(/cmdstat_(\S+):calls=(\d+)/g)]
      .filter(([, name = '']) => !['evalsha', 'info', 'config|resetstat'].includes(name))
      .reduce((sum, [, , calls]) => sum + Number(calls), 0)
  }

  it('take no more than a few, however long a log is, and never read it whole', async () => {
    let now = 1_795_195_800_000
    const store = redisStore(redis, { heartbeatMs: 0, prefix: 'long', clock: () => now })
    const limiter = patientLimiter({ store, limit: 100_000, window: '1h' })
    // Some 400 blocks: whoever read them one by one would need as many commands.
    for (let i = 0; i < 5_000; i += 1) {
      now += 100
      await limiter.consume('k', { cost: 5 })
    }
    await redis.config('RESETSTAT')
    await limiter.consume('k')
    now += 1_000
    await limiter.consume('k')
    expect(await innerCalls()).toBeLessThanOrEqual(16)
    // All of it expires at once: a few probes and one cut.
    now += 3_600_000
    await redis.config('RESETSTAT')
    await limiter.consume('k')
    expect(await innerCalls()).toBeLessThanOrEqual(60)
  })
})

it.each([
  { algorithm: 'sliding-log', limit: 20 },
  { algorithm: 'sliding-log', limit: 200 },
  { algorithm: 'sliding-counter', limit: 20 },
  { algorithm: 'fixed-window', limit: 20 },
  { algorithm: 'token-bucket', limit: 20 },
] as const)(
  "a key outlives its units by Redis' own clock, though its time to live is rarely set ($algorithm, $limit)",
  async ({ algorithm, limit }) => {
    const store = redisStore(redis, { heartbeatMs: 0, prefix: 'lazy' })
    const limiter = patientLimiter({ store, algorithm, limit, window: 4_000 })
    await redis.config('RESETSTAT')
    let key = ''
    for (let i = 0; i < limit; i += 1) {
      const decision = await limiter.consume('k')
      if (i === 0) [key = ''] = await redis.keys('lazy:*')
      const neededMs = algorithm === 'token-bucket' ? (4_000 * (i + 1)) / limit : 4_000
      const ttlMs = await redis.pttl(key)
      expect(decision.allowed).toBe(true)
      if (algorithm !== 'fixed-window') expect(ttlMs).toBeGreaterThan(neededMs - 500)
      expect(ttlMs).toBeLessThanOrEqual(10_000)
    }
    expect(await callsOf(server, 'pexpire')).toBeLessThanOrEqual(6)
  },
)

function leasesOf(limit: number, options: RedisStoreOptions = {}) {
  return patientLimiter({
    store: redisStore(redis, { heartbeatMs: 0, digest: false, ...options }),
    policies: [{ name: 'running', algorithm: 'concurrency', limit }],
  })
}

describe.each([
  { clock: 'server', options: {} },
  { clock: 'caller', options: { clock: () => 1_795_195_800_000 } },
] as const)('leases by the clock of the $clock', ({ options }) => {
  it('are taken, renewed and released without the whole algorithm', async () => {
    const limiter = leasesOf(3, options)
    await limiter.release(await limiter.consume('warm'))
    await redis.config('RESETSTAT')
    const first = await limiter.consume('k')
    const second = await limiter.consume('k', { cost: 2 })
    expect(second.outcomes[0]).toMatchObject({ allowed: true, remaining: 0 })
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 1_000 })
    expect(await limiter.renew(second)).toBe(true)
    expect(await limiter.release(second)).toBe(true)
    expect(await limiter.refund(first)).toBe(true)
    expect(await redis.keys('*')).toEqual([])
    expect(await callsOf(server, 'evalsha')).toBe(6)
    // Only the whole algorithm looks for leases that have expired.
    expect(await callsOf(server, 'zrangebyscore')).toBe(0)
  })

  it('of one tick share calls, and are released in the order of the requests', async () => {
    const limiter = leasesOf(1, { ...options, batch: { maxInFlight: 1 } })
    const held = await Promise.all(['a', 'b', 'c', 'd'].map((key) => limiter.consume(key)))
    await redis.config('RESETSTAT')
    const mixed = held.flatMap((decision, index) => [
      limiter.release(decision),
      limiter.consume('abcd'[index] ?? ''),
    ])
    await tick()
    const answers = await Promise.all(mixed)
    expect(answers.map((one) => (typeof one === 'boolean' ? one : one.allowed))).toEqual(
      Array(8).fill(true),
    )
    expect(await callsOf(server, 'evalsha')).toBe(1)
  })

  it('have numbers of their own, however many are taken at once and again', async () => {
    const limiter = leasesOf(10_000, options)
    const numbers = new Set<number | undefined>()
    for (let round = 0; round < 3; round += 1) {
      const taken = await Promise.all(Array.from({ length: 300 }, () => limiter.consume('k')))
      for (const { outcomes } of taken) numbers.add(outcomes[0]?.receipt?.at)
      expect(await redis.zcard((await redis.keys('*'))[0] ?? '')).toBe(301)
      const released = await Promise.all(taken.map((decision) => limiter.release(decision)))
      expect(released).not.toContain(false)
    }
    expect(numbers.size).toBe(900)
  })
})

it('counts leases that an older version has written, and lets it read its own', async () => {
  const limiter = leasesOf(5)
  await limiter.consume('k')
  const [key = ''] = await redis.keys('*')
  const [, member = ''] = await redis.zrange(key, '0', '-1')
  expect(member).toMatch(/^\d{16}:1$/)
  await redis.zadd(key, -3, '#', Date.now() + 20_000, '4294967295:2')
  expect((await limiter.consume('k')).outcomes[0]?.remaining).toBe(1)
  expect(await redis.zscore(key, '#')).toBe('-4')
})
