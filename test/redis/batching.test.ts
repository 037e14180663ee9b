import { setImmediate as tick } from 'node:timers/promises'
import type { Limiter, StoreErrorEvent } from '@sluice/core'
import { type RedisStoreOptions, redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

let server: RedisServer
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
  // Redis knows the script from now on, so that each call is one command.
  await patientLimiter({
    store: redisStore(redis, { heartbeatMs: 0 }),
    limit: 1,
    window: '1m',
  }).consume('warm')
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

beforeEach(async () => void (await redis.flushall()))

type Argument = string | Buffer

/** A call that was sent, and waits at the gate. */
interface Held {
  readonly keys: number
  /** Lets it go on to Redis, or fail. */
  release(error?: Error): void
}

/** A client whose calls go to a real Redis, each when the test lets it. */
function gatedClient() {
  const held: Held[] = []
  const sent: number[] = []
  return {
    held,
    /** Keys of the calls so far. */
    sent,
    defineCommand: () => undefined,
    async call(command: string, ...args: Argument[]): Promise<unknown> {
      const keys = Number(args[1])
      sent.push(keys)
      await new Promise<void>((resolve, reject) => {
        held.push({ keys, release: (error) => (error ? reject(error) : resolve()) })
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

function open(options: RedisStoreOptions = {}) {
  const client = gatedClient()
  const errors: StoreErrorEvent[] = []
  const limiter: Limiter = patientLimiter({
    store: redisStore(client, { heartbeatMs: 0, prefix: `batch${Math.random()}`, ...options }),
    limit: 1_000,
    window: '1m',
    failureMode: 'closed',
    onStoreError: (event) => errors.push(event),
  })
  return { client, limiter, errors }
}

describe('requests', () => {
  it('are sent at once when nothing is under way, with all of their tick', async () => {
    const { client, limiter } = open()
    const first = limiter.consume('a')
    const second = limiter.consume('b')
    await Promise.resolve()
    expect(client.sent).toEqual([2])
    client.held.shift()?.release()
    expect((await first).allowed && (await second).allowed).toBe(true)
  })

  it('wait for the answer when something is, and then travel together, in order', async () => {
    const { client, limiter } = open()
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

  it('leave before the answer when they fill half a call, in no more calls than may be under way', async () => {
    const { client, limiter } = open({ batch: { maxKeys: 10, maxInFlight: 3 } })
    const all = [limiter.consume('first')]
    await tick()
    for (let i = 0; i < 4; i += 1) all.push(limiter.consume(`few${i}`))
    await tick()
    expect(client.sent).toEqual([1])
    all.push(limiter.consume('half'))
    await tick()
    for (let i = 0; i < 40; i += 1) all.push(limiter.consume(`k${i}`))
    await tick()
    expect(client.sent).toEqual([1, 5, 10])
    // One slow call holds up nothing but itself and the place that it takes.
    client.held.splice(1, 1)[0]?.release()
    await settle()
    expect(client.sent).toEqual([1, 5, 10, 10])
    while (client.held.length > 0) {
      for (const call of client.held.splice(0)) call.release()
      await settle()
    }
    expect(client.sent).toEqual([1, 5, 10, 10, 10, 10])
    expect((await Promise.all(all)).every(({ allowed }) => allowed)).toBe(true)
  })

  it('of one call that fails fail alone, each with its reason', async () => {
    const { client, limiter, errors } = open({ batch: { maxKeys: 2 } })
    const all = ['a', 'b', 'c', 'd', 'e', 'f'].map((key) => limiter.consume(key))
    await tick()
    expect(client.sent).toEqual([2, 2, 2])
    client.held[0]?.release()
    client.held[1]?.release(new Error('connection reset'))
    client.held[2]?.release()
    const decisions = await Promise.all(all)
    expect(decisions.map(({ source }) => source)).toEqual([
      'store',
      'store',
      'closed',
      'closed',
      'store',
      'store',
    ])
    expect(errors.map(({ error }) => error.code)).toEqual(Array(2).fill('SLUICE_STORE_FAILED'))
  })

  it('that are alike are one row of a call, and each gets its own answer', async () => {
    const { client, limiter } = open()
    const all = Array.from({ length: 1_200 }, () => limiter.consume('hot'))
    await tick()
    while (client.held.length > 0) {
      for (const call of client.held.splice(0)) call.release()
      await settle()
    }
    expect(client.sent.every((keys) => keys === 1)).toBe(true)
    const decisions = await Promise.all(all)
    expect(decisions.map(({ outcomes }) => outcomes[0]?.remaining)).toEqual(
      Array.from({ length: 1_200 }, (_, i) => Math.max(0, 999 - i)),
    )
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(1_000)
  })

  it('with several checks are weighed by all of their keys, and never torn apart', async () => {
    const client = gatedClient()
    const limiter = patientLimiter({
      store: redisStore(client, { heartbeatMs: 0, prefix: 'torn', batch: { maxKeys: 4 } }),
      policies: ['a', 'b', 'c'].map((name) => ({ name, limit: 9, window: '1m' })),
    })
    const all = ['x', 'y', 'z'].map((key) => limiter.consume(key))
    await tick()
    expect(client.sent).toEqual([3, 3, 3])
    for (const call of client.held.splice(0)) call.release()
    expect((await Promise.all(all)).every(({ allowed }) => allowed)).toBe(true)
  })
})

describe('the commands inside a call', () => {
  async function slowest(work: () => Promise<unknown>): Promise<number> {
    await redis.config('SET', 'slowlog-log-slower-than', '1000', 'slowlog-max-len', '1000')
    await redis.slowlog('RESET')
    await work()
    const entries = (await redis.slowlog('GET', 1_000)) as unknown as [number, number, number][]
    return Math.max(0, ...entries.map(([, , us]) => us))
  }

  it('take no more than a few, however long a log is, and never read it whole', async () => {
    let now = 1_795_195_800_000
    const limiter = patientLimiter({
      store: redisStore(redis, { heartbeatMs: 0, prefix: 'long', clock: () => now }),
      limit: 100_000,
      window: '1h',
    })
    for (let i = 0; i < 20_000; i += 1) {
      now += 100
      await limiter.consume('k', { cost: 5 })
    }
    await redis.config('RESETSTAT')
    await limiter.consume('k')
    now += 1_000
    await limiter.consume('k')
    const stats = await redis.info('commandstats')
    const inner = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].filter(
      ([, name = '']) => !['evalsha', 'info', 'config|resetstat'].includes(name),
    )
    expect(inner.reduce((sum, [, , calls]) => sum + Number(calls), 0)).toBeLessThanOrEqual(16)
    // All of it expires at once: a few probes and one cut.
    now += 3_600_000
    await redis.config('RESETSTAT')
    expect(await slowest(() => limiter.consume('k'))).toBeLessThan(50_000)
    const after = await redis.info('commandstats')
    const calls = [...after.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].reduce(
      (sum, [, , count]) => sum + Number(count),
      0,
    )
    expect(calls).toBeLessThanOrEqual(60)
  })
})

describe('a key', () => {
  it.each([
    { algorithm: 'sliding-log', limit: 20 },
    { algorithm: 'sliding-log', limit: 2_000 },
    { algorithm: 'sliding-counter', limit: 20 },
    { algorithm: 'fixed-window', limit: 20 },
    { algorithm: 'token-bucket', limit: 20 },
  ] as const)(
    "outlives its units by Redis' own clock, though its time to live is rarely set ($algorithm, $limit)",
    async ({ algorithm, limit }) => {
      const limiter = patientLimiter({
        store: redisStore(redis, { heartbeatMs: 0, prefix: 'lazy' }),
        algorithm,
        limit,
        window: 4_000,
      })
      await redis.config('RESETSTAT')
      for (let i = 0; i < limit; i += 1) {
        const decision = await limiter.consume('k')
        const [key = ''] = await redis.keys('lazy:*')
        const neededMs = algorithm === 'token-bucket' ? (4_000 * (i + 1)) / limit : 4_000
        const ttlMs = await redis.pttl(key)
        expect(decision.allowed).toBe(true)
        if (algorithm !== 'fixed-window') expect(ttlMs).toBeGreaterThan(neededMs - 500)
        expect(ttlMs).toBeLessThanOrEqual(10_000)
      }
      const stats = await redis.info('commandstats')
      const expirations = Number(/cmdstat_pexpire:calls=(\d+)/.exec(stats)?.[1] ?? 0)
      expect(expirations).toBeLessThanOrEqual(6)
    },
  )
})
