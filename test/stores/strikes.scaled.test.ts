import type { CheckLimiter, LimiterOptions } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkOf, patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { scaled } from '../support/scale.ts'
import { until } from '../support/until.ts'
import {
  AskedStores,
  denyingDrivers,
  type OpenedStore,
  packedDriver,
  type SharingOptions,
  serverOf,
} from './store-drivers.ts'

const options: LimiterOptions = {
  name: 'quota',
  limit: 2,
  window: '10s',
  penalty: { name: 'bans', after: 10, within: '1m', for: '5m' },
}

describe.each(denyingDrivers)('$name', (driver) => {
  const server = serverOf(driver)
  const asked = new AskedStores()
  const stores: OpenedStore[] = []
  let now = 0
  let opened = 0

  beforeEach(() => {
    now = 1_795_195_800_000
    opened += 1
  })

  afterEach(async () => {
    for (const { close } of stores.splice(0)) await close()
  })

  /** A process of its own, as far as the store can tell; all of a test share their keys. */
  async function processOf(
    sharing: SharingOptions = {},
    limiterOptions: SomeOptions = {},
  ): Promise<CheckLimiter> {
    const own = { name: `strikes${opened}`, denialTtlMs: 1_000, ...sharing }
    const store = await server.open(() => now, own)
    stores.push(store)
    return patientLimiter({ store: asked.watch(store), ...options, ...limiterOptions })
  }

  /** One that always asks the store. */
  function witness(): Promise<CheckLimiter> {
    return processOf({ denialTtlMs: 0 })
  }

  async function strikesLeft(limiter: CheckLimiter, key = 'k'): Promise<number | undefined> {
    return (await limiter.peek(key)).outcomes[1]?.remaining
  }

  /** Uses up the quota, and is denied so often, all but the first time from memory. */
  async function denied(limiter: CheckLimiter, times: number): Promise<void> {
    await limiter.consume('k', { cost: 2 })
    for (let i = 0; i < times; i += 1) await limiter.consume('k')
  }

  describe('denials that are answered without the store', () => {
    it('lead to a block all the same, and cost the store next to nothing', async () => {
      const limiter = await processOf()
      await limiter.consume('k', { cost: 2 })
      let deniedBefore = 0
      const count = await asked.while(async () => {
        for (let i = 0; i < 1_000; i += 1) {
          const { allowed, outcomes } = await limiter.consume('k')
          expect(allowed).toBe(false)
          if (outcomes[1]?.allowed) deniedBefore += 1
        }
      })
      expect(deniedBefore).toBeGreaterThanOrEqual(9)
      expect(deniedBefore).toBeLessThanOrEqual(11)
      expect(count).toBeLessThanOrEqual(4)
      expect((await (await witness()).consume('k')).retryAfterMs).toBe(300_000)
    })

    it('lead to a block of thenReset, after which every process has the whole quota', async () => {
      const penalty = { name: 'bans', after: 9, within: '1m', for: '5s', thenReset: true } as const
      const one = await processOf({ denialTtlMs: 50 }, { penalty })
      const other = await processOf({ denialTtlMs: 50 }, { penalty })
      await denied(one, 2)
      expect((await other.consume('k')).retryAfterMs).toBe(10_000)
      await until('the block', async () => (await one.consume('k')).retryAfterMs === 5_000)
      now += 5_000

      await until('the quota', async () => (await other.consume('k', { cost: 2 })).allowed)
      expect((await one.consume('k')).allowed).toBe(false)
    })

    it('of a parallel flood lead to a block too', async () => {
      const limiter = await processOf()
      const count = await asked.while(async () => {
        for (let i = 0; i < 10; i += 1) {
          await Promise.all(Array.from({ length: 100 }, () => limiter.consume('k')))
        }
      })
      // Those of the first round, of which none knows of a denial yet.
      expect(count).toBeLessThanOrEqual(106)
      expect((await (await witness()).consume('k')).retryAfterMs).toBe(300_000)
    })

    it('are told within denialTtlMs, where they lead to no block', async () => {
      const [limiter, other] = [await processOf({ denialTtlMs: 50 }), await witness()]
      await denied(limiter, 4)
      expect(await strikesLeft(other)).toBe(9)
      await until('told', async () => (await strikesLeft(other)) === 6)
    })

    it('are told when the store is closed', async () => {
      const limiter = await processOf({ denialTtlMs: 60_000 })
      await denied(limiter, 4)
      await limiter.close()
      expect(await strikesLeft(await witness())).toBe(6)
    })

    it('are no strikes while the key is blocked and its quota is used up for longer', async () => {
      const limiter = await processOf({ denialTtlMs: 60_000 }, { name: 'hourly', window: '1h' })
      await limiter.consume('k', { cost: 2 })
      await limiter.block('k', '1s')
      for (let i = 0; i < 20; i += 1) await limiter.consume('k')
      now += 1_000
      // The block is over, the quota still used up.
      const { outcomes } = await limiter.consume('k')
      expect(outcomes).toMatchObject([{ allowed: false }, { allowed: true, remaining: 9 }])
      await limiter.close()
    })

    it('count for as many keys as there are, within bounds', { timeout: 60_000 }, async () => {
      const limiter = await processOf({ denialTtlMs: 60_000 }, { limit: 0 })
      for (let round = 0; round < 12; round += 1) {
        const keys = Array.from({ length: 1_000 }, (_, i) => `${round}-${i}`)
        for (let i = 0; i < 3; i += 1) await Promise.all(keys.map((key) => limiter.consume(key)))
      }
      await limiter.close()
      const other = await witness()
      for (const key of ['0-0', '5-500', '11-999']) expect(await strikesLeft(other, key)).toBe(7)
    })

    it("cost nothing with after: 'never'", async () => {
      const limiter = await processOf({}, { penalty: { after: 'never', name: 'bans' } })
      await denied(limiter, 1)
      expect(await asked.while(() => denied(limiter, 500))).toBe(0)
    })
  })

  describe('a block', () => {
    it('of one process is in force in all of them', async () => {
      const [one, two] = [await processOf(), await processOf()]
      for (let i = 0; i < 12; i += 1) {
        await one.consume('k')
        await two.consume('k')
      }
      // Both have learnt of it, or do so with the next question.
      now += 1_000
      for (const limiter of [one, two]) {
        expect((await limiter.consume('k')).outcomes[1]).toMatchObject({ allowed: false })
      }
    })

    it('by another process counts at once for a key that is allowed, and after denialTtlMs for one that is not', async () => {
      const [here, there] = [await processOf(), await processOf()]
      await here.consume('free')
      await denied(here, 2)
      await there.block('free', '1h')
      await there.block('k', '1h')
      expect((await here.consume('free')).retryAfterMs).toBe(3_600_000)
      expect((await here.consume('k')).retryAfterMs).toBeLessThanOrEqual(10_000)
      now += 1_000
      expect((await here.consume('k')).retryAfterMs).toBe(3_599_000)
    })

    it('is answered without the store, and counts down', async () => {
      const limiter = await processOf()
      await limiter.block('k', '1h')
      await limiter.consume('k')
      now += 500
      expect(await asked.while(() => limiter.consume('k'))).toBe(0)
      expect((await limiter.consume('k')).retryAfterMs).toBe(3_599_500)
    })
  })

  describe('the denial that leads to a block', () => {
    it('asks the store once, whoever comes meanwhile', async () => {
      const limiter = await processOf()
      await denied(limiter, 9)
      const count = await asked.while(async () => {
        const flood = await Promise.all(Array.from({ length: 9 }, () => limiter.consume('k')))
        expect(flood[0]).toMatchObject({ allowed: false, retryAfterMs: 300_000 })
      })
      // What was collected, and the request itself.
      expect(count).toBe(2)
      expect((await limiter.consume('k')).retryAfterMs).toBe(300_000)
    })

    it('is the same for every key that the penalty counts, whichever quota denies', async () => {
      const bans = { name: 'bans', after: 4, within: '1m', for: '5m' } as const
      const limiter = await processOf({}, { limit: 1, penalty: bans })
      const ask = (user: string) =>
        limiter.decide([
          checkOf(limiter.policies[0], { key: user }),
          checkOf(limiter.penalty, { key: 'address' }),
        ])
      for (const [index, retryAfterMs] of [0, 0, 10_000, 10_000, 10_000, 300_000].entries()) {
        expect(await ask(index % 2 === 0 ? 'ada' : 'bob')).toMatchObject({ retryAfterMs })
      }
    })
  })

  describe('a lone process', () => {
    const step = fc.record({
      elapsedMs: fc.oneof(fc.constant(0), fc.nat(40), fc.nat(1_500), fc.nat(8_000)),
      key: fc.constantFrom('a', 'a', 'b'),
      what: fc.constantFrom('consume', 'consume', 'consume', 'consume', 'peek', 'reset', 'block'),
    })
    const penalty = fc.record({
      after: fc.integer({ min: 1, max: 6 }),
      for: fc.constantFrom(100, 900, 5_000),
      factor: fc.constantFrom(1, 2),
    })

    it('denies and tells waits as if it asked the store every time', {
      timeout: 60_000,
    }, async () => {
      await fc.assert(
        fc.asyncProperty(penalty, fc.array(step, { maxLength: 40 }), async (own, steps) => {
          opened += 1
          const limits = { penalty: { name: 'bans', within: '10h', max: '1m', ...own } } as const
          const twins = [
            await processOf({ denialTtlMs: 0, name: `twin${opened}` }, limits),
            await processOf({}, limits),
          ]
          for (const { elapsedMs, key, what } of steps) {
            now += elapsedMs
            const [asked, told] = await Promise.all(
              twins.map(async (limiter) => {
                if (what === 'reset') return void (await limiter.reset(key))
                if (what === 'block') return void (await limiter.block(key, 700))
                const { allowed, retryAfterMs } = await limiter[what](key)
                return { allowed, retryAfterMs }
              }),
            )
            expect(told).toEqual(asked)
          }
        }),
        { numRuns: driver === packedDriver ? scaled(20, 60) : 15 },
      )
    })
  })
})
