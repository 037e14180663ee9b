import { algorithmNames, type Limiter, type PolicyFields } from '@sluice/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { algorithmPolicy } from './algorithm-policy.ts'
import { type OpenedStore, type StoreDriver, serverOf, storeDrivers } from './store-drivers.ts'

describe.each(storeDrivers)('$name', (driver: StoreDriver) => {
  const server = serverOf(driver)
  describe.each(algorithmNames)('%s', (algorithm) => {
    // A multiple of the window, so that no test crosses the edge of an aligned one by chance.
    const start = 1_795_195_800_000
    let now: number
    let opened: OpenedStore

    beforeEach(async () => {
      now = start
      opened = await server.open(() => now)
    })

    afterEach(() => opened.close())

    function limiterOf(...policies: (PolicyFields & { limit: number })[]): Limiter {
      return patientLimiter({
        store: opened.store,
        policies: policies.map((policy) => algorithmPolicy(algorithm, { window: '1m', ...policy })),
      })
    }

    async function remaining(limiter: Limiter, key: string): Promise<(number | undefined)[]> {
      return (await limiter.peek(key)).outcomes.map((outcome) => outcome.remaining)
    }

    /** A wait for a lease is a hint, and leases do not come back with time. */
    const isExact = algorithm !== 'concurrency'

    it('admits the limit and refuses the next, until it has waited as told', async () => {
      const limiter = limiterOf({ name: 'p', limit: 3 })
      for (const left of [2, 1, 0]) {
        const decision = await limiter.consume('k')
        expect(decision).toMatchObject({ allowed: true, retryAfterMs: 0, source: 'store' })
        expect(decision.outcomes[0]).toMatchObject({ allowed: true, limit: 3, remaining: left })
      }
      const denied = await limiter.consume('k')
      expect(denied.allowed).toBe(false)
      expect(denied.outcomes[0]).toMatchObject({ allowed: false, remaining: 0 })
      if (!isExact) return
      now += denied.retryAfterMs - 1
      expect((await limiter.consume('k')).allowed).toBe(false)
      now += 1
      expect((await limiter.consume('k')).allowed).toBe(true)
    })

    it('charges nothing when one of several policies denies', async () => {
      const limiter = limiterOf({ name: 'tight', limit: 2 }, { name: 'loose', limit: 10 })
      for (let i = 0; i < 2; i += 1) await limiter.consume('k')
      for (let i = 0; i < 5; i += 1) {
        const decision = await limiter.consume('k')
        expect(decision.allowed).toBe(false)
        expect(decision.outcomes.map(({ allowed }) => allowed)).toEqual([false, true])
      }
      expect(await remaining(limiter, 'k')).toEqual([0, 8])
    })

    it('takes the cost that it is told, and says what can never pass', async () => {
      const limiter = limiterOf({ name: 'p', limit: 10 })
      await limiter.consume('k', { cost: 7 })
      expect((await limiter.consume('k', { cost: 4 })).outcomes[0]).toMatchObject({
        allowed: false,
        remaining: 3,
      })
      const never = await limiter.consume('k', { cost: 11 })
      expect(never).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
      expect((await limiter.consume('k', { cost: 3 })).outcomes[0]).toMatchObject({
        allowed: true,
        remaining: 0,
      })
    })

    it('lets cost 0 pass without a trace, and nothing at all with limit 0', async () => {
      const open = limiterOf({ name: 'open', limit: 1 })
      expect((await open.consume('k', { cost: 0 })).allowed).toBe(true)
      expect(await remaining(open, 'k')).toEqual([1])
      const blocked = limiterOf({ name: 'blocked', limit: 0 })
      for (const cost of [0, 1]) {
        const denied = await blocked.consume('k', { cost })
        expect(denied).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
        expect(denied.outcomes[0]).toMatchObject({
          remaining: 0,
          resetMs: isExact ? 60_000 : undefined,
        })
      }
    })

    it('changes nothing when it is peeked at', async () => {
      const limiter = limiterOf({ name: 'p', limit: 2 })
      await limiter.consume('k')
      for (let i = 0; i < 5; i += 1) {
        expect((await limiter.peek('k')).outcomes[0]).toMatchObject({ allowed: true, remaining: 1 })
      }
      expect((await limiter.peek('k', { cost: 2 })).allowed).toBe(false)
    })

    it('gives back once what a decision took', async () => {
      const limiter = limiterOf({ name: 'p', limit: 3 })
      const decision = await limiter.consume('k', { cost: 2 })
      await limiter.consume('k')
      expect(await limiter.refund(decision)).toBe(true)
      expect(await limiter.refund(decision)).toBe(false)
      expect(await remaining(limiter, 'k')).toEqual([2])
    })

    it('gives nothing back after a reset, within the same millisecond', async () => {
      const limiter = limiterOf({ name: 'p', limit: 3 })
      const decision = await limiter.consume('k')
      await limiter.reset('k')
      await limiter.consume('k', { cost: 2 })
      await limiter.refund(decision)
      expect(await remaining(limiter, 'k')).toEqual([1])
    })

    it('gives nothing back in a later window, nor for a denial', async () => {
      const limiter = limiterOf({ name: 'p', limit: 2 })
      const decision = await limiter.consume('k', { cost: 2 })
      const denied = await limiter.consume('k')
      expect(await limiter.refund(denied)).toBe(false)
      now += 180_000
      await limiter.consume('k', { cost: 2 })
      await limiter.refund(decision)
      expect(await remaining(limiter, 'k')).toEqual([0])
    })

    it('forgets one key and no other', async () => {
      const limiter = limiterOf({ name: 'p', limit: 2 })
      await limiter.consume('a')
      await limiter.consume('b')
      await limiter.reset('a')
      expect(await remaining(limiter, 'a')).toEqual([2])
      expect(await remaining(limiter, 'b')).toEqual([1])
    })

    it('charges without asking, and then denies', async () => {
      const limiter = limiterOf({ name: 'p', limit: 5 })
      const charged = await limiter.charge('k', { cost: 9 })
      expect(charged).toMatchObject({ allowed: true, retryAfterMs: 0 })
      expect(charged.outcomes[0]).toMatchObject({ remaining: 0 })
      expect((await limiter.consume('k')).allowed).toBe(false)
    })

    it.runIf(isExact)('charges a policy that counts denials, whichever policy denies', async () => {
      const limiter = limiterOf(
        { name: 'tight', limit: 1 },
        { name: 'penalty', limit: 3, countDenied: true },
      )
      await limiter.consume('k')
      expect((await limiter.consume('k')).outcomes.map((outcome) => outcome.remaining)).toEqual([
        0, 1,
      ])
      expect((await limiter.consume('k')).outcomes.map((outcome) => outcome.remaining)).toEqual([
        0, 0,
      ])
    })

    it('obeys a limit that changes, without forgetting', async () => {
      const store = opened.store
      const [small, large] = [2, 5].map((limit) => {
        return patientLimiter({
          store,
          ...algorithmPolicy(algorithm, { name: 'p', limit, window: '1m' }),
        })
      })
      if (!small || !large) throw new Error('two limiters')
      await small.consume('k', { cost: 2 })
      expect(await remaining(large, 'k')).toEqual([3])
      await large.consume('k', { cost: 3 })
      expect((await small.consume('k')).outcomes[0]).toMatchObject({
        allowed: false,
        limit: 2,
        remaining: 0,
      })
    })

    it('admits exactly the limit of a parallel burst', async () => {
      const limiter = limiterOf({ name: 'p', limit: 37 })
      const decisions = await Promise.all(Array.from({ length: 200 }, () => limiter.consume('k')))
      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(37)
    })

    it('keeps keys apart that delimiters could confuse', async () => {
      const limiter = limiterOf({ name: 'p', limit: 1 })
      const keys = [
        'a:b',
        'a',
        'b',
        'a:',
        ':a',
        '{a}',
        'a\0',
        'a|b',
        'a*',
        '\ud800',
        '\udfff',
        '%3a',
        'x'.repeat(300),
        'x'.repeat(301),
      ]
      for (const key of keys)
        expect((await limiter.consume(key)).allowed, JSON.stringify(key)).toBe(true)
    })

    it.each([-3_600_000, -5, 5, 3_600_000])(
      'keeps the count of a longer window when the clock steps by %i ms',
      async (ms) => {
        const limiter = patientLimiter({
          store: opened.store,
          ...algorithmPolicy(algorithm, { name: 'p', limit: 3, window: '1d' }),
        })
        now += 7_200_000
        await limiter.consume('k', { cost: 3 })
        now += ms
        expect((await limiter.consume('k', { cost: 3 })).allowed).toBe(false)
        expect((await limiter.peek('k')).outcomes[0]?.remaining).toBeLessThanOrEqual(1)
      },
    )

    it.each([5, 3_600_000])(
      'denies no longer than a window, and hands out nothing, when the clock is set back by %i ms',
      async (ms) => {
        const limiter = limiterOf({ name: 'p', limit: 3 })
        now += 30_000
        await limiter.consume('k', { cost: 3 })
        now -= ms
        expect((await limiter.consume('k')).allowed).toBe(false)
        now += algorithm === 'sliding-counter' ? 120_000 : 60_000
        expect((await limiter.consume('k', { cost: 3 })).allowed).toBe(true)
      },
    )
  })
})
