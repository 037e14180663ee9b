import type { Decision, LimiterOptions, PolicyFields, Store } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkOf, patientLimiter } from '../support/patient-limiter.ts'
import { scaled } from '../support/scale.ts'
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

describe.each(denyingDrivers)('$name', (driver) => {
  const server = serverOf(driver)
  const asked = new AskedStores()
  const opened: OpenedStore[] = []
  let now = 0

  beforeEach(() => {
    now = 1_795_195_800_000
  })

  afterEach(async () => {
    for (const { close } of opened.splice(0)) await close()
  })

  /** Opens a store with a name of its own, unless it is given. */
  async function open(options: SharingOptions = {}): Promise<Store> {
    const store = await server.open(() => now, {
      ...{ name: `denials${Math.random()}`.replace('.', ''), denialTtlMs: 1_000 },
      ...options,
    })
    opened.push(store)
    return asked.watch(store)
  }

  const limiterOver = async (...policies: readonly PolicyFields[]) =>
    patientLimiter({ store: await open(), policies })

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

    it.each(['refund', 'reset'] as const)('is forgotten with a %s of this process', async (how) => {
      const limiter = patientLimiter({ store: await open(), ...policy })
      const decision = await limiter.consume('k', { cost: 2 })
      await limiter.consume('k')
      // The denial that is under way must not outlive what comes after it.
      const late = limiter.consume('k', { cost: 1 })
      await (how === 'refund' ? limiter.refund(decision) : limiter.reset('k'))
      await late
      expect((await limiter.consume('k')).allowed).toBe(true)
    })

    it('that was under way when the key was reset is not believed', async () => {
      const limiter = patientLimiter({ store: await open(), ...policy })
      await limiter.consume('k', { cost: 2 })
      const [denied] = await Promise.all([limiter.consume('k'), limiter.reset('k')])
      expect(denied.allowed).toBe(false)
      expect((await limiter.consume('k')).allowed).toBe(true)
    })

    it('takes note of a reset by others after a second', async () => {
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

    it('is asked for every time with denialTtlMs: 0, with countDenied, and for leases', async () => {
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

    it('leaves open what it does not know of other policies', async () => {
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

    it('tells nothing of a policy beside it that was reset meanwhile', async () => {
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

    it('takes one place however many policies deny', async () => {
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

    describe('of a lone process', () => {
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
})
