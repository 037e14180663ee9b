import type { Decision, Limiter, LimiterOptions } from '@sluice/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { memoryDriver, type OpenedStore, packedDriver, serverOf } from './store-drivers.ts'

describe.each([memoryDriver, packedDriver])('$name', (driver) => {
  const server = serverOf(driver)
  const start = 1_795_195_800_000
  let now: number
  let opened: OpenedStore

  beforeEach(async () => {
    now = start
    opened = await server.open(() => now)
  })

  afterEach(() => opened.close())

  function limiterOf(options: LimiterOptions): Limiter {
    return patientLimiter({ store: opened.store, ...options })
  }

  async function consumeAll(limiter: Limiter, requests: number): Promise<Decision[]> {
    const decisions: Decision[] = []
    for (let i = 0; i < requests; i += 1) decisions.push(await limiter.consume('k'))
    return decisions
  }

  describe('a token bucket', () => {
    it('lets a burst of its capacity pass, and then the limit of every window', async () => {
      const limiter = limiterOf({ algorithm: 'token-bucket', limit: 10, window: '1s', burst: 25 })
      const burst = await consumeAll(limiter, 30)
      expect(burst.filter(({ allowed }) => allowed)).toHaveLength(25)
      now += 1_000
      const later = await consumeAll(limiter, 30)
      expect(later.filter(({ allowed }) => allowed)).toHaveLength(10)
    })

    it('never shows more than the limit, and tells the effective window of what remains', async () => {
      const limiter = limiterOf({ algorithm: 'token-bucket', limit: 100, window: '1m', burst: 300 })
      expect((await limiter.consume('k')).outcomes[0]).toMatchObject({
        limit: 100,
        remaining: 100,
        resetMs: 60_000,
      })
      expect((await limiter.consume('k', { cost: 296 })).outcomes[0]).toMatchObject({
        remaining: 3,
        resetMs: 1_800,
      })
    })

    it('can hold less than the limit', async () => {
      const limiter = limiterOf({ algorithm: 'token-bucket', limit: 60, window: '1m', burst: 1 })
      expect((await limiter.consume('k')).allowed).toBe(true)
      expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 1_000 })
      expect(await limiter.peek('k', { cost: 2 })).toMatchObject({
        retryAfterMs: Number.POSITIVE_INFINITY,
      })
    })

    it('loses no part of a unit over many odd steps', async () => {
      const limiter = limiterOf({ algorithm: 'token-bucket', limit: 7, window: 1_000, burst: 1 })
      let admitted = 0
      for (; now < start + 100_000; now += 13)
        if ((await limiter.consume('k')).allowed) admitted += 1
      // 7 a second for 100 s, and the first one; each waits for the next step of 13 ms at most.
      expect(admitted).toBeGreaterThan(100 * 7 * (143 / 156) - 1)
      expect(admitted).toBeLessThanOrEqual(701)
    })

    it('gives back what has not drained yet, and no more', async () => {
      const limiter = limiterOf({ algorithm: 'token-bucket', limit: 10, window: '1s' })
      const first = await limiter.consume('k', { cost: 5 })
      const second = await limiter.consume('k', { cost: 5 })
      now += 700
      // All of the first five have drained, and two of the second.
      await limiter.refund(first)
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(7)
      await limiter.refund(second)
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(10)
    })
  })

  describe('a leaky bucket', () => {
    it('lets requests go one after the other, at the rate of the limit', async () => {
      const limiter = limiterOf({ algorithm: 'leaky-bucket', limit: 4, window: '1s', queue: 3 })
      const decisions = await consumeAll(limiter, 6)
      expect(decisions.map(({ allowed }) => allowed)).toEqual([
        true,
        true,
        true,
        true,
        false,
        false,
      ])
      expect(decisions.slice(0, 4).map(({ delayMs }) => delayMs)).toEqual([0, 250, 500, 750])
      expect(decisions[4]).toMatchObject({ delayMs: 0, retryAfterMs: 250 })
      now += 250
      expect(await limiter.consume('k')).toMatchObject({ allowed: true, delayMs: 750 })
    })

    it('lets nobody wait longer than maxDelay, to the millisecond', async () => {
      const limiter = limiterOf({
        algorithm: 'leaky-bucket',
        limit: 3,
        window: '1s',
        maxDelay: 500,
      })
      expect(await limiter.consume('k')).toMatchObject({ allowed: true, delayMs: 0 })
      expect(await limiter.consume('k')).toMatchObject({ allowed: true, delayMs: 334 })
      expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 167 })
      now += 166
      expect((await limiter.peek('k')).allowed).toBe(false)
      now += 1
      expect(await limiter.peek('k')).toMatchObject({ allowed: true, delayMs: 500 })
    })

    it('obeys the tighter of queue and maxDelay, and holds nobody with neither room', async () => {
      const both = limiterOf({
        name: 'both',
        algorithm: 'leaky-bucket',
        limit: 10,
        window: '1s',
        queue: 50,
        maxDelay: 200,
      })
      const decisions = await consumeAll(both, 5)
      expect(decisions.map(({ delayMs }) => delayMs)).toEqual([0, 100, 200, 0, 0])
      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(3)
      const none = limiterOf({
        name: 'none',
        algorithm: 'leaky-bucket',
        limit: 10,
        window: '1s',
        queue: 0,
      })
      expect((await consumeAll(none, 2)).map(({ allowed }) => allowed)).toEqual([true, false])
    })

    it('has nothing left of its limit once as many units wait, though more may wait', async () => {
      const limiter = limiterOf({ algorithm: 'leaky-bucket', limit: 10, window: '1s' })
      const left = (await consumeAll(limiter, 22)).map(({ outcomes: [one] }) => one?.remaining)
      expect(left).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, ...Array.from({ length: 13 }, () => 0)])
      const { allowed, outcomes } = await limiter.peek('k')
      expect({ allowed, ...outcomes[0] }).toMatchObject({
        allowed: true,
        resetMs: 1_300,
        used: undefined,
      })
      now += 1_299
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(0)
      now += 1
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(1)
    })

    it('charges a request that it refuses to no other policy', async () => {
      const limiter = limiterOf({
        policies: [
          { name: 'queue', algorithm: 'leaky-bucket', limit: 1, window: '1s', queue: 1 },
          { name: 'quota', limit: 100, window: '1h' },
        ],
      })
      await consumeAll(limiter, 5)
      expect((await limiter.peek('k')).outcomes[1]?.remaining).toBe(98)
    })
  })

  describe('concurrency', () => {
    const options: LimiterOptions = { algorithm: 'concurrency', limit: 2, lease: '10s' }

    it('counts requests until they are released, each once', async () => {
      const limiter = limiterOf(options)
      const [first, second, third] = await consumeAll(limiter, 3)
      expect(third).toMatchObject({ allowed: false, retryAfterMs: 1_000 })
      expect(third?.outcomes[0]).toMatchObject({ remaining: 0, resetMs: undefined })
      if (!first || !second || !third) throw new Error('three decisions')
      expect(await limiter.release(first)).toBe(true)
      expect(await limiter.release(first)).toBe(false)
      expect(await limiter.release(third)).toBe(false)
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(1)
      expect(await limiter.release(second)).toBe(true)
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(2)
    })

    it('frees the leases of a process that died, and keeps those that are renewed', async () => {
      const limiter = limiterOf({ ...options, retryAfter: '3s' })
      const [dead, alive] = await consumeAll(limiter, 2)
      if (!dead || !alive) throw new Error('two decisions')
      now += 6_000
      expect(await limiter.renew(alive)).toBe(true)
      now += 3_999
      expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 3_000 })
      now += 1
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(1)
      expect(await limiter.renew(dead)).toBe(false)
      now += 6_000
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(2)
      expect(await limiter.renew(alive)).toBe(false)
    })

    it('does not prolong a lease that was released or forgotten', async () => {
      const limiter = limiterOf(options)
      const [released, forgotten] = await consumeAll(limiter, 2)
      if (!released || !forgotten) throw new Error('two decisions')
      await limiter.release(released)
      expect(await limiter.renew(released)).toBe(false)
      await limiter.reset('k')
      expect(await limiter.renew(forgotten)).toBe(false)
      await limiter.consume('k')
      expect(await limiter.release(forgotten)).toBe(false)
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(1)
    })

    it('is released and renewed by itself, beside policies that stay charged', async () => {
      const limiter = limiterOf({
        policies: [
          { name: 'running', algorithm: 'concurrency', limit: 1 },
          { name: 'quota', limit: 10, window: '1h' },
        ],
      })
      const decision = await limiter.consume('k')
      expect(await limiter.renew(decision)).toBe(true)
      expect(await limiter.release(decision)).toBe(true)
      expect((await limiter.peek('k')).outcomes.map(({ remaining }) => remaining)).toEqual([1, 9])
      expect(await limiter.refund(decision)).toBe(true)
      expect((await limiter.peek('k')).outcomes.map(({ remaining }) => remaining)).toEqual([1, 10])
    })

    it('takes leases of several units, and leaves nothing behind', async () => {
      const limiter = limiterOf({ ...options, limit: 10 })
      const decisions = await Promise.all(
        [3, 4, 3, 1].map((cost) => limiter.consume('k', { cost })),
      )
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
      for (const decision of decisions) await limiter.release(decision)
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(10)
      expect((await opened.storedKeys?.()) ?? []).toEqual([])
    })
  })

  it('decides different algorithms side by side, all or nothing', async () => {
    const limiter = limiterOf({
      policies: [
        { name: 'log', limit: 10, window: '1m' },
        { name: 'counter', limit: 20, window: '1m', algorithm: 'sliding-counter' },
        { name: 'window', limit: 30, window: '1m', algorithm: 'fixed-window' },
        { name: 'bucket', limit: 40, window: '1m', algorithm: 'token-bucket', burst: 4 },
        { name: 'running', limit: 50, algorithm: 'concurrency' },
      ],
    })
    const decisions = await consumeAll(limiter, 6)
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, true, false, false])
    expect(decisions[5]?.outcomes.map(({ remaining }) => remaining)).toEqual([6, 16, 26, 0, 46])
  })

  it.each([2 ** 22, 2 ** 23 - 1, 2 ** 23, 2 ** 23 + 1, 2 ** 24 - 1, 2 ** 24, 2 ** 47 - 1])(
    'keeps a log of a limit of %i exact, also beyond charges that overshoot it',
    async (limit) => {
      const limiter = limiterOf({ limit, window: 60 })
      for (const [cost, elapsedMs] of [
        [limit, 0],
        [limit, 7],
        [Math.ceil(limit / 2), 11],
        [limit + 5, 3],
        [3, 20],
      ] as const) {
        now += elapsedMs
        await limiter.charge('k', { cost })
        expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(0)
      }
      // Of all that was charged only the newest three are younger than the window.
      now += 40
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(limit - 3)
      expect((await limiter.consume('k', { cost: limit - 2 })).allowed).toBe(false)
      expect((await limiter.consume('k', { cost: limit - 3 })).allowed).toBe(true)
    },
  )
})
