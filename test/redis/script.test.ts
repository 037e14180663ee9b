import type { InvalidEvent, LimiterOptions, PolicyOptions, StoreErrorEvent } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { generated, generatedFile } from '../packages/redis-scripts.ts'
import { checkOf, patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { callsOf, redisOfFile } from '../support/redis-test.ts'
import { readText } from '../support/workspace.ts'

const { redis: server } = await redisOfFile()
let client: Redis

beforeEach(async () => {
  client = new Redis(server.url)
  await client.flushall()
  await client.script('FLUSH')
  await client.config('RESETSTAT')
})

afterEach(() => client.disconnect())

const calls = (command: string) => callsOf(server, command)

it('the texts of the scripts are written from the Lua files as they are now: npm run build:lua', () => {
  expect(readText(generatedFile) === generated()).toBe(true)
})

describe('the script', () => {
  it('is sent whole once, by its SHA-1 from then on, and whole again after the server forgot it', async () => {
    const limiter = patientLimiter({ store: redisStore(client), limit: 10, window: '1m' })
    for (let i = 0; i < 5; i += 1) await limiter.consume('k')
    expect(await calls('eval')).toBe(1)
    expect(await calls('evalsha')).toBe(5)
    await client.script('FLUSH')
    const decision = await limiter.consume('k')
    expect(decision).toMatchObject({ allowed: true, source: 'store', remaining: 4 })
    expect(await calls('eval')).toBe(2)
  })

  it('is the same for all lists of the same algorithms, and as fast for a list as for each policy', async () => {
    const store = redisStore(client, { heartbeatMs: 0 })
    const log = { name: 'log', limit: 10, window: '1m' } as const
    const bucket = { name: 'bucket', algorithm: 'token-bucket', limit: 10, window: '1m' } as const
    const penalty = { after: 3, within: '1m', for: '5m' } as const
    const limiters = [
      patientLimiter({ store, policies: [log, bucket], penalty }),
      patientLimiter({ store, policies: [{ ...log, limit: 20 }, bucket], penalty }),
    ]
    for (const limiter of limiters) {
      for (let i = 0; i < 2; i += 1) await limiter.consume('k')
    }
    const decision = await limiters[0]?.consume('k')
    expect(decision?.outcomes.map(({ remaining }) => remaining)).toEqual([5, 5, 3])
    expect(await calls('eval')).toBe(1)
    // One command reads all keys, and one writes each. Only absent keys are read again: they may hold another type.
    expect(await calls('mget')).toBe(5)
    expect(await calls('get')).toBe(7)
    expect(await calls('append')).toBe(4)
    expect((await calls('set')) + (await calls('setrange'))).toBe(6)
  })

  it('keeps calls in order while several scripts are sent for the first time', async () => {
    const store = redisStore(client, { heartbeatMs: 0 })
    const log = { name: 'log', limit: 10, window: '1m' } as const
    const bucket = { name: 'bucket', algorithm: 'token-bucket', limit: 10, window: '1m' } as const
    const alone = patientLimiter({ store, policies: [log] })
    const beside = patientLimiter({ store, policies: [log, bucket] })
    // The server knows the script of the third call already, and not that of the second.
    const other = redisStore(client, { heartbeatMs: 0 })
    await patientLimiter({ store: other, policies: [log] }).reset('other')
    const all = [alone.consume('k'), beside.consume('k'), alone.reset('k')] as const
    const [, second] = await Promise.all(all)
    expect(second.outcomes[0]?.remaining).toBe(8)
  })

  it('is not run again after another error', async () => {
    const errors: StoreErrorEvent[] = []
    const observers = { onStoreError: (event: StoreErrorEvent) => errors.push(event) }
    const store = redisStore(client)
    const limiter = patientLimiter({ store, limit: 10, window: '1m', observers })
    await limiter.consume('k')
    await server.cli('CONFIG', 'SET', 'maxmemory', '1')
    const decision = await limiter.consume('k')
    await server.cli('CONFIG', 'SET', 'maxmemory', '0')
    expect(decision).toMatchObject({ allowed: true, source: 'fallback' })
    expect(errors).toMatchObject([{ op: 'consume', error: { code: 'SLUICE_REDIS_MEMORY' } }])
    expect(errors[0]?.error.message).toMatch(/OOM.*maxmemory/)
    expect(await calls('eval')).toBe(1)
  })

  it.each([
    [{}, 84],
    [{ maxKeys: 4_000, maxBytes: 1_048_576 }, 4],
    [{ maxKeys: 4_000, maxBytes: 1_024 }, 250],
  ])('takes no more keys a call than %j says, and leaves none out', async (batch, expected) => {
    const rate = { limit: 1, window: '1h' } as const
    const policies = Array.from({ length: 40 }, (_, index) => ({ name: `p${index}`, ...rate }))
    const limiter = patientLimiter({ store: redisStore(client, { batch }), policies })
    await limiter.consume('warm')
    const before = await calls('evalsha')
    const keys = Array.from({ length: 250 }, (_, index) => `k${index}`)
    const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
    expect(decisions.every(({ allowed, outcomes }) => allowed && outcomes.length === 40)).toBe(true)
    expect((await calls('evalsha')) - before).toBe(expected)
  })

  it("asks for no time with clock: 'client', but once, by a command", async () => {
    const store = redisStore(client, { clock: 'client', heartbeatMs: 0 })
    const limiter = patientLimiter({ store, limit: 2, window: '1h' })
    expect((await limiter.consume('k')).source).toBe('store')
    expect((await limiter.consume('k')).source).toBe('store')
    expect(await limiter.reset('k')).toBe(true)
    await store.documents?.announce('f', { id: 'one', text: 'v1' }, 60_000)
    expect(await store.documents?.members('f')).toEqual([{ id: 'one', text: 'v1' }])
    expect(await calls('time')).toBe(1)
  })

  it.each<[string, Pick<LimiterOptions, 'penalty'>]>([
    ['alone', {}],
    ['beside another policy', { penalty: { after: 1_000, within: '1m', for: '1m' } }],
  ])('tells the largest levels to the last unit, %s', async (_, more) => {
    const queue = {
      algorithm: 'leaky-bucket',
      limit: 2 ** 40,
      window: '1ms',
      maxDelay: '1h',
    } as const
    const store = redisStore(client, { heartbeatMs: 0 })
    const limiter = patientLimiter({ store, policies: [{ name: 'largest', ...queue }], ...more })
    // Clients misread these numbers where Redis tells them as integers.
    for (const left of [62, 49, 48, 47, 30, 7, 1, 0]) {
      const { outcomes, source } = await limiter.consume(`k${left}`, {
        cost: Number.MAX_SAFE_INTEGER - left,
      })
      // One unit more would be one that waits.
      expect(outcomes[0]?.delayMs).toBe(0)
      expect(source).toBe('store')
    }
  })

  it('writes a bounded number of members to a sorted set, whatever is asked', async () => {
    const store = redisStore(client, { encoding: 'sorted-set', heartbeatMs: 0 })
    const limiter = patientLimiter({ store, limit: 10_000, window: '1h' })
    for (let i = 0; i < 2; i += 1) await limiter.charge('k', { cost: Number.MAX_SAFE_INTEGER })
    const [key = ''] = await client.keys('*')
    expect(await client.zcard(key)).toBe(20_001)
    const many = { key: 'tier', cost: 1_000_000, limit: 1_000_000 }
    const decision = await limiter.decide([checkOf(limiter.policies[0], many)])
    expect(decision).toMatchObject({ allowed: false, source: 'store' })
    expect(decision.outcomes[0]?.limit).toBe(10_000)
  })

  it.each(['1h', '2h'] as const)(
    'finds the oldest unit of a log of %s, however many have expired since the last request',
    async (window) => {
      let now = 1_795_195_800_123
      const store = redisStore(client, { clock: () => now, heartbeatMs: 0 })
      const limit = 40
      const limiter = patientLimiter({ store, name: 'p', limit, window, resolution: 1 })
      const windowMs = limiter.policies[0]?.windowMs ?? 0
      // A request at which so many units have expired leaves their number as a hint for the next.
      for (const hint of [0, 1, 5]) {
        const start = now + 2 * windowMs
        const keys = Array.from({ length: limit - hint }, (_, index) => `${hint}, ${index} more`)
        for (now = start; now < start + limit; now += 1)
          await Promise.all(keys.map((key) => limiter.consume(key)))
        now = start + windowMs + hint - 1
        if (hint > 0) await Promise.all(keys.map((key) => limiter.consume(key)))
        for (const [more, key] of keys.entries()) {
          const expired = hint + more
          now = start + windowMs + expired - 1
          const live = limit - expired + (hint > 0 ? 1 : 0)
          const { outcomes } = await limiter.consume(key, { cost: limit - live + 1 })
          expect(outcomes, key).toMatchObject([{ allowed: false, retryAfterMs: 1 }])
          if (live === limit) continue
          const { remaining } = (await limiter.consume(key)).outcomes[0] ?? {}
          expect(remaining, key).toBe(limit - live - 1)
        }
      }
    },
  )

  it('keeps at most ten bytes a request in a packed log', async () => {
    let now = 1_795_195_800_000
    const store = redisStore(client, { clock: () => now })
    const limiter = patientLimiter({ store, limit: 1_000, window: '1h' })
    for (let i = 0; i < 1_000; i += 1) {
      now += 1
      await limiter.consume('k')
    }
    const [key = ''] = await client.keys('*')
    const bytes = Number(await client.memory('USAGE', key, 'SAMPLES', 0))
    expect(bytes / 1_000).toBeLessThanOrEqual(10)
  })
})

it('two stores of one client are one place: private policies stay apart, and a name means one thing', async () => {
  const open = (options: SomeOptions, prefix = 'sluice') =>
    patientLimiter({ store: redisStore(client, { prefix }), limit: 2, ...options })
  const left: unknown[] = []
  for (const limiter of [open({ window: '10s' }), open({ window: '10s' })]) {
    for (let i = 0; i < 2; i += 1) left.push((await limiter.consume('k')).remaining)
  }
  expect(left).toEqual([1, 0, 1, 0])
  open({ name: 'p', window: '10s' })
  const conflict = expect.objectContaining({ code: 'SLUICE_POLICY_CONFLICT' })
  expect(() => open({ name: 'p', window: '20s' })).toThrow(conflict)
  expect(() => open({ name: 'p', window: '20s' }, 'elsewhere')).not.toThrow()
})

it('a store that is closed answers what is under way and refuses what comes after', async () => {
  const store = redisStore(client)
  const errors: StoreErrorEvent[] = []
  const observers = { onStoreError: (event: StoreErrorEvent) => errors.push(event) }
  const options = { limit: 1, window: '1m', failureMode: 'closed', observers } as const
  const limiter = patientLimiter({ store, ...options })
  const underWay = limiter.consume('k')
  await limiter.close()
  expect(await underWay).toMatchObject({ allowed: true, source: 'store' })
  expect(await limiter.consume('k')).toMatchObject({ allowed: false, source: 'closed' })
  expect(errors.map(({ error }) => error.code)).toEqual(['SLUICE_STORE_CLOSED'])
  await expect(limiter.reset('k')).rejects.toMatchObject({ code: 'SLUICE_STORE_CLOSED' })
  expect(client.status).toBe('ready')
})

const log = (name: string, limit = 10): PolicyOptions => ({ name, limit, window: '1h' })

describe('a list of policies', () => {
  it.each([6, 7, 12])(
    'of %i policies counts each of them once, at every request of a call',
    async (width) => {
      const limiter = patientLimiter({
        store: redisStore(client, { heartbeatMs: 0 }),
        policies: Array.from({ length: width }, (_, index) => log(`p${index}`, 10 + index)),
      })
      const asked = Array.from({ length: 12 }, (_, index) => limiter.consume(`k${index % 3}`))
      for (const [index, { allowed, outcomes }] of (await Promise.all(asked)).entries()) {
        const taken = 1 + Math.floor(index / 3)
        expect(allowed).toBe(true)
        expect(outcomes.map(({ remaining }) => remaining)).toEqual(
          outcomes.map((_, place) => 10 + place - taken),
        )
      }
    },
  )

  it('counts a foreign key as empty, and no other policy twice', async () => {
    const invalid: InvalidEvent[] = []
    const observers = { onInvalid: (event: InvalidEvent) => void invalid.push(event) }
    const store = redisStore(client, { heartbeatMs: 0, digest: false, observers })
    const limiter = patientLimiter({ store, policies: [log('first'), log('second')] })
    await limiter.consume('k')
    const [key = ''] = (await client.keys('*')).filter((name) => name.includes('second'))
    await client.flushall()
    await client.hset(key, 'field', 'value')
    const { outcomes } = await limiter.consume('k')
    expect(outcomes.map(({ remaining }) => remaining)).toEqual([9, 9])
    expect(invalid.map(({ code }) => code)).toEqual(['SLUICE_STATE_UNREADABLE'])
  })

  it('takes the short way while a policy that counts denials has none to count', async () => {
    const limiter = patientLimiter({
      store: redisStore(client, { heartbeatMs: 0, denialTtlMs: 0 }),
      policies: [log('few', 3), { ...log('all'), countDenied: true }],
    })
    for (let unit = 1; unit <= 5; unit += 1) {
      const { allowed, outcomes } = await limiter.consume('k')
      expect(allowed).toBe(unit <= 3)
      expect(outcomes.map(({ remaining }) => remaining)).toEqual([Math.max(0, 3 - unit), 10 - unit])
      // Only the whole algorithms read keys one by one.
      if (unit === 1) await client.config('RESETSTAT')
      if (unit === 3) expect(await client.info('commandstats')).not.toMatch(/cmdstat_get:/)
    }
  })

  it('loads a bounded number of scripts, whatever lists a store is asked for', async () => {
    await client.script('FLUSH')
    const store = redisStore(client, { heartbeatMs: 0 })
    const kinds = ['sliding-log', 'fixed-window', 'token-bucket'] as const
    const lists = kinds.flatMap((a) => kinds.flatMap((b) => kinds.map((c) => [a, b, c])))
    expect(lists).toHaveLength(27)
    for (const [number, list] of lists.entries()) {
      const policies = list.map((algorithm, at) => ({ ...log(`p${number}-${at}`), algorithm }))
      const limiter = patientLimiter({ store, policies })
      const { outcomes } = await limiter.consume('k')
      expect(outcomes.map(({ remaining }) => remaining)).toEqual([9, 9, 9])
    }
    expect(await client.info('memory')).toContain('number_of_cached_scripts:21\r\n')
  })
})
