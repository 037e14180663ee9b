import type { CheckLimiter, Decision, LimiterOptions, PolicyFields, Store } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkOf, patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { scaled } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { exactNames } from './algorithm-policy.ts'
import {
  AskedStores,
  denyingDrivers,
  type OpenedStore,
  packedDriver,
  type SharingOptions,
  serverOf,
} from './store-drivers.ts'

const policy: LimiterOptions = { limit: 2, window: '10s' }
const tight: PolicyFields = { name: 'tight', limit: 1, window: '10s' }

const punished: LimiterOptions = {
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

  /** Opens a store with a name of its own, unless it is given. */
  async function open(options: SharingOptions = {}): Promise<Store> {
    const store = await server.open(() => now, {
      ...{ name: `denials${Math.random()}`.replace('.', ''), denialTtlMs: 1_000 },
      ...options,
    })
    stores.push(store)
    return asked.watch(store)
  }

  const limiterOver = async (...policies: readonly PolicyFields[]) =>
    patientLimiter({ store: await open(), policies })

  /** A process of its own, as far as the store can tell; all of a test share their keys. */
  async function processOf(sharing: SharingOptions = {}, own: SomeOptions = {}) {
    const store = await open({ name: `strikes${opened}`, ...sharing })
    return patientLimiter({ store, ...punished, ...own })
  }

  /** One that always asks the store. */
  const witness = () => processOf({ denialTtlMs: 0 })

  async function strikesLeft(limiter: CheckLimiter, key = 'k'): Promise<number | undefined> {
    return (await limiter.peek(key)).outcomes[1]?.remaining
  }

  /** Uses up the quota, and is denied so often, all but the first time from memory. */
  async function denied(limiter: CheckLimiter, times: number): Promise<void> {
    await limiter.consume('k', { cost: 2 })
    for (let i = 0; i < times; i += 1) await limiter.consume('k')
  }

  describe('a denial', () => {
    it('is answered without the store while it holds, with a Retry-After that counts down', async () => {
      const limiter = patientLimiter({ store: await open(), ...policy })
      await limiter.consume('k', { cost: 2 })
      now += 500
      expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 9_500 })
      const answers: Decision[] = []
      const used = await asked.while(async () => {
        for (let i = 0; i < 999; i += 1) {
          now += 1
          answers.push(await limiter.consume('k'))
        }
      })
      expect(used).toBe(0)
      expect(answers.every(({ allowed, source }) => !allowed && source === 'store')).toBe(true)
      expect(answers[0]).toMatchObject({ retryAfterMs: 9_499 })
      expect(answers[998]).toMatchObject({ retryAfterMs: 8_501 })
      expect(answers[998]?.outcomes[0]).toMatchObject({ remaining: 0, resetMs: 8_501, limit: 2 })
      now += 1
      expect(await asked.while(() => limiter.consume('k'))).toBe(1)
    })

    it('covers higher costs, and no lower ones', async () => {
      const limiter = patientLimiter({ store: await open(), limit: 5, window: '10s' })
      await limiter.consume('k', { cost: 2 })
      expect((await limiter.consume('k', { cost: 4 })).allowed).toBe(false)
      expect(await asked.while(() => limiter.consume('k', { cost: 5 }))).toBe(0)
      expect((await limiter.consume('k', { cost: 3 })).allowed).toBe(true)
    })

    it('covers one key and one limit', async () => {
      const own = { store: await open(), name: 'p', window: '10s' } as const
      const [small, large] = [
        patientLimiter({ ...own, limit: 2 }),
        patientLimiter({ ...own, limit: 3 }),
      ]
      await small.consume('a', { cost: 2 })
      expect((await small.consume('a')).allowed).toBe(false)
      expect((await large.consume('a')).allowed).toBe(true)
      expect((await small.consume('b')).allowed).toBe(true)
    })

    it.each(['refund', 'reset'] as const)('is dropped by a %s in this process', async (how) => {
      const limiter = patientLimiter({ store: await open(), ...policy })
      const decision = await limiter.consume('k', { cost: 2 })
      await limiter.consume('k')
      // The denial that is under way must not outlive what comes after it.
      const late = limiter.consume('k', { cost: 1 })
      await (how === 'refund' ? limiter.refund(decision) : limiter.reset('k'))
      await late
      expect((await limiter.consume('k')).allowed).toBe(true)
    })

    it('in flight during a reset is not cached', async () => {
      const limiter = patientLimiter({ store: await open(), ...policy })
      await limiter.consume('k', { cost: 2 })
      const [denied] = await Promise.all([limiter.consume('k'), limiter.reset('k')])
      expect(denied.allowed).toBe(false)
      expect((await limiter.consume('k')).allowed).toBe(true)
    })

    it('notices a reset by others after a second', async () => {
      const sharing = async () =>
        patientLimiter({ store: await open({ name: 'shared' }), name: 'p', ...policy })
      const [here, there] = [await sharing(), await sharing()]
      await here.consume('k', { cost: 2 })
      await here.consume('k')
      await there.reset('k')
      now += 999
      expect((await here.consume('k')).allowed).toBe(false)
      now += 1
      expect((await here.consume('k')).allowed).toBe(true)
    })

    it('is not cached with denialTtlMs: 0, with countDenied, or for leases', async () => {
      for (const [options, storeOptions] of [
        [policy, { denialTtlMs: 0 }],
        [{ ...policy, countDenied: true }, {}],
        [{ algorithm: 'concurrency', limit: 2 }, {}],
      ] as const) {
        const limiter = patientLimiter({ store: await open(storeOptions), ...options })
        await limiter.consume('k', { cost: 2 })
        expect(await asked.while(() => limiter.consume('k'))).toBe(1)
        expect(await asked.while(() => limiter.consume('k'))).toBe(1)
      }
    })

    it('is counted by a policy beside it that counts denials', async () => {
      const counting = { name: 'penalty', limit: 5, window: '1m', countDenied: true } as const
      const limiter = await limiterOver(tight, counting)
      for (const remaining of [4, 3, 2, 1]) {
        expect((await limiter.consume('k')).outcomes[1]).toMatchObject({ remaining })
      }
    })

    it('reports unknown values of other policies as unknown', async () => {
      const limiter = await limiterOver(tight, { name: 'loose', limit: 9, window: '1m' })
      await limiter.consume('k')
      const [asked, remembered] = [await limiter.consume('k'), await limiter.consume('k')]
      expect(asked.outcomes[1]).toMatchObject({ allowed: true, remaining: 8 })
      // Others may have taken units of the loose policy since.
      expect(remembered.outcomes).toMatchObject([
        { allowed: false, remaining: 0 },
        { allowed: true, remaining: undefined, resetMs: undefined, retryAfterMs: 0 },
      ])
      const [first, loose] = limiter.policies
      const mixed = await limiter.decide([checkOf(first), checkOf(loose, { key: 'another' })])
      expect(mixed).toMatchObject({ allowed: false })
      expect(mixed.outcomes[1]).toMatchObject({ allowed: true, remaining: undefined })
    })

    it('reports nothing about another policy that was reset meanwhile', async () => {
      const limiter = await limiterOver(tight, { name: 'long', limit: 1, window: '1m' })
      const [short, long] = limiter.policies
      const checks = [checkOf(short, { key: 'a' }), checkOf(long, { key: 'b' })]
      await limiter.decide(checks)
      await limiter.decide(checks)
      await limiter.reset('a')
      const denied = await limiter.decide(checks)
      expect(denied).toMatchObject({ allowed: false, outcomes: [{ allowed: true }, {}] })
      expect(denied.outcomes[0]?.remaining).toBeUndefined()
    })

    it('is remembered for 6,000 keys that two policies deny', async () => {
      const loose = { name: 'loose', limit: 0, window: '1m' } as const
      const limiter = await limiterOver({ ...tight, limit: 0 }, loose)
      for (let i = 0; i < 6; i += 1) {
        await Promise.all(Array.from({ length: 1_000 }, (_, j) => limiter.consume(`${i}-${j}`)))
      }
      expect(await asked.while(() => limiter.consume('0-0'))).toBe(0)
    })

    it('is bounded in number', async () => {
      const limiter = patientLimiter({ store: await open(), limit: 0, window: '10s' })
      for (let round = 0; round < 22; round += 1) {
        await Promise.all(Array.from({ length: 1_000 }, (_, i) => limiter.consume(`${round}-${i}`)))
      }
      expect(await asked.while(() => limiter.consume('0-0'))).toBe(1)
      expect(await asked.while(() => limiter.consume('21-0'))).toBe(0)
    })

    describe('of a process that is alone', () => {
      const algorithm = fc.constantFrom(...exactNames)

      function requests(cost: fc.Arbitrary<number>) {
        return fc.array(
          fc.record({
            elapsedMs: fc.oneof(fc.constant(0), fc.nat(40), fc.nat(1_500)),
            key: fc.constantFrom('a', 'b'),
            cost,
            what: fc.constantFrom('consume', 'consume', 'consume', 'consume', 'refund', 'reset'),
          }),
          { minLength: 1, maxLength: 40 },
        )
      }

      it.each([
        ['is what the store would say', fc.constant(2), true],
        ['denies what the store would, and tells no longer wait', fc.nat(6), false],
      ])('%s', { timeout: 60_000 }, async (_what, cost, isExact) => {
        await fc.assert(
          fc.asyncProperty(algorithm, requests(cost), async (name, steps) => {
            const stores = [await open({ denialTtlMs: 0 }), await open()]
            const twins = stores.map((store) => ({
              limiter: patientLimiter({ store, algorithm: name, limit: 5, window: 300 }),
              taken: [] as Decision[],
            }))
            for (const step of steps) {
              now += step.elapsedMs
              const [asked, told] = await Promise.all(
                twins.map(async ({ limiter, taken }) => {
                  if (step.what === 'reset') return void (await limiter.reset(step.key))
                  const last = taken.pop()
                  if (step.what === 'refund') return void (last && (await limiter.refund(last)))
                  const decision = await limiter.consume(step.key, { cost: step.cost })
                  taken.push(decision)
                  return decision
                }),
              )
              expect(told?.allowed).toBe(asked?.allowed)
              if (!asked || !told) continue
              expect(told.retryAfterMs).toBeLessThanOrEqual(asked.retryAfterMs)
              if (isExact) expect(told.retryAfterMs).toBe(asked.retryAfterMs)
            }
          }),
          { numRuns: driver === packedDriver ? scaled(15, 100) : 15 },
        )
      })
    })
  })

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

    it('are reported within denialTtlMs if they cause no block', async () => {
      const [limiter, other] = [await processOf({ denialTtlMs: 50 }), await witness()]
      await denied(limiter, 4)
      expect(await strikesLeft(other)).toBe(9)
      await until('told', async () => (await strikesLeft(other)) === 6)
    })

    it('are reported when the store is closed', async () => {
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
    it('of one process applies in all processes', async () => {
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
    it('calls the store once, whatever arrives meanwhile', async () => {
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

  describe('strikes of a process that is alone', () => {
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
