import { setImmediate as tick } from 'node:timers/promises'
import { type RedisStoreOptions, redisStore } from '@sluice/redis'
import { beforeEach, describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { callsOf, redisOfFile } from '../support/redis-test.ts'

const { redis: server, client: redis } = await redisOfFile()

beforeEach(async () => void (await redis.flushall()))

function limiterOf(limit: number, options: RedisStoreOptions = {}) {
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
    const limiter = limiterOf(3, options)
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
    const limiter = limiterOf(1, { ...options, batch: { maxInFlight: 1 } })
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
    const limiter = limiterOf(10_000, options)
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
  const limiter = limiterOf(5)
  await limiter.consume('k')
  const [key = ''] = await redis.keys('*')
  const [, member = ''] = await redis.zrange(key, '0', '-1')
  expect(member).toMatch(/^\d{16}:1$/)
  await redis.zadd(key, -3, '#', Date.now() + 20_000, '4294967295:2')
  expect((await limiter.consume('k')).outcomes[0]?.remaining).toBe(1)
  expect(await redis.zscore(key, '#')).toBe('-4')
})

it('keeps a lease in order behind calls of other policies, and of other limits', async () => {
  const store = redisStore(redis, { heartbeatMs: 0, batch: { maxInFlight: 1 } })
  const running = { name: 'running', algorithm: 'concurrency', limit: 1 } as const
  const alone = patientLimiter({ store, policies: [running] })
  const beside = patientLimiter({
    store,
    policies: [{ name: 'log', limit: 10, window: '1m' }, running],
  })
  const held = await alone.consume('k')
  const [before, isReleased, ...after] = await Promise.all([
    beside.consume('k'),
    alone.release(held),
    beside.consume('k'),
    alone.consume('k'),
  ])
  expect(before.allowed).toBe(false)
  expect(isReleased).toBe(true)
  // Nobody can tell which of them came first.
  expect(after.filter(({ allowed }) => allowed)).toHaveLength(1)
})
