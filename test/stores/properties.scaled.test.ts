import type { Check, DecidingOp, Policy, Store, StoreOp } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkOf } from '../support/patient-limiter.ts'
import { scaled } from '../support/scale.ts'
import { type AnyCheck, changeOf } from '../support/store-through.ts'
import { weighted } from '../support/weighted.ts'
import { algorithmPolicy, exactNames, testedAlgorithms } from './algorithm-policy.ts'
import {
  memoryDriver,
  packedDriver,
  postgresDriver,
  runsOf,
  type StoredKey,
  serverOf,
  sortedSetDriver,
} from './store-drivers.ts'
import { policiesOf, policyOf, traces } from './traces.ts'

const start = 1_795_195_800_123
let now = start

/** Requests of one client in time: how long after the one before, and what each costs. */
function arrivals(windowMs: number): fc.Arbitrary<{ elapsedMs: number; cost: number }[]> {
  const elapsedMs = weighted(
    [3, fc.constant(0)],
    [3, fc.integer({ min: 0, max: Math.max(1, Math.floor(windowMs / 4)) })],
    [2, fc.integer({ min: windowMs - 1, max: windowMs + 1 })],
  )
  return fc.array(fc.record({ elapsedMs, cost: fc.integer({ min: 0, max: 4 }) }), {
    minLength: 1,
    maxLength: 80,
  })
}

const shapes = fc.record({
  limit: fc.integer({ min: 1, max: 12 }),
  window: fc.constantFrom(1, 3, 50, 1_000, 60_000),
  steps: fc.constantFrom(0, 1, 3, 8),
})

describe('a lone client', () => {
  const server = serverOf(memoryDriver)

  // The differential proves that all stores tell the same waits.
  it.each(exactNames)(
    'that waits as told is admitted, and not a millisecond before: %s',
    async (algorithm) => {
      const pair = fc.tuple(shapes, shapes)
      const cases = pair.chain((both) => fc.tuple(fc.constant(both), arrivals(both[0].window)))
      const law = fc.asyncProperty(cases, async ([both, requests]) => {
        now = start
        const { store, close } = await server.open(() => now)
        const policies = policiesOf(
          both.map(({ limit, window }, index) =>
            algorithmPolicy(algorithm, { name: `p${index}`, limit, window }),
          ),
        )
        const isAdmitted = async (checks: readonly Check[]): Promise<boolean> =>
          (await store.apply('peek', checks)).every(({ allowed }) => allowed)
        for (const { elapsedMs, cost } of requests) {
          now += elapsedMs
          const checks = policies.map((policy) => checkOf(policy, { cost }))
          const outcomes = await store.apply('consume', checks)
          const waitMs = Math.max(...outcomes.map(({ retryAfterMs }) => retryAfterMs))
          if (waitMs === 0 || waitMs === Number.POSITIVE_INFINITY) continue
          const denied = now
          now = denied + waitMs - 1
          expect(await isAdmitted(checks)).toBe(false)
          now = denied + waitMs
          expect(await isAdmitted(checks)).toBe(true)
          now = denied
        }
        await close()
      })
      await fc.assert(law, { numRuns: scaled(100, 500) })
    },
  )
})

describe.each([memoryDriver, packedDriver])(
  'a clock that goes back and forth ($name)',
  (driver) => {
    const server = serverOf(driver)
    const aligned = { algorithm: 'fixed-window', align: 'clock' } as const
    const algorithms = exactNames.map((algorithm) => ({ name: algorithm as string, algorithm }))

    it.each([...algorithms, { name: 'fixed-window by the clock', ...aligned }])(
      'within a window hands out no more than one that runs once: $name',
      { timeout: 120_000 },
      async ({ name: _, algorithm, ...own }) => {
        const cases = shapes.chain((shape) => {
          const instant = fc.nat(shape.window - 1)
          const instants = fc.array(instant, { minLength: 1, maxLength: 30 })
          return fc.tuple(fc.constant(shape), fc.nat(shape.window), instants)
        })
        const law = fc.asyncProperty(cases, async ([{ limit, window }, offset, instants]) => {
          const { store, close } = await server.open(() => now)
          const options = algorithmPolicy(algorithm, { name: 'p', limit, window })
          const policy = policyOf({ ...options, ...own })
          const admittedAt = async (key: string, instant: number): Promise<number> => {
            now = start + offset + instant
            const asks = Array.from({ length: limit + 1 }, () =>
              store.apply('consume', [checkOf(policy, { key })]),
            )
            const outcomes = await Promise.all(asks)
            return outcomes.filter(([outcome]) => outcome?.allowed).length
          }
          const once = [Math.min(...instants), Math.max(...instants)]
          let atMost = 0
          for (const instant of once) atMost += await admittedAt('once', instant)
          let admitted = 0
          for (const instant of instants) admitted += await admittedAt('to and fro', instant)
          await close()
          expect(admitted).toBeLessThanOrEqual(atMost)
        })
        await fc.assert(law, { numRuns: runsOf(driver, { memory: 600, server: 60 }) })
      },
    )
  },
)

describe.each([packedDriver, sortedSetDriver, postgresDriver])('stored keys ($name)', (driver) => {
  const server = serverOf(driver)

  it('live no longer than they count, after every step', { timeout: 120_000 }, async () => {
    const law = fc.asyncProperty(traces, async ({ startMs, policies, steps }) => {
      let clock = startMs
      const { store, storedKeys, close } = await server.open(() => clock)
      try {
        for (const { elapsedMs, requests } of steps) {
          clock += elapsedMs
          for (const { op, checks } of requests) {
            await refundAfter(store, op, checks)
            expectBounded((await storedKeys?.()) ?? [], policies)
          }
        }
      } finally {
        await close()
      }
    })
    const isRedis = driver !== postgresDriver
    await fc.assert(law, { numRuns: runsOf(driver, { memory: 0, server: isRedis ? 40 : 5 }) })
  })

  /** Refunds go to what was just taken, since their receipts come from this store. */
  async function refundAfter(
    store: Store,
    op: StoreOp,
    checks: readonly AnyCheck[],
  ): Promise<void> {
    if (op !== 'refund') {
      const change = changeOf(op, checks)
      if (!change) await store.apply(op as DecidingOp, checks)
      else if (change.checks.length > 0) await store.change(change)
      return
    }
    const outcomes = await store.apply('charge', checks)
    const taken = outcomes.flatMap(({ receipt }) =>
      receipt ? [{ ...receipt.check, receipt }] : [],
    )
    if (taken.length > 0) await store.change({ op: 'refund', checks: taken })
  }

  function expectBounded(keys: readonly StoredKey[], policies: readonly Policy[]): void {
    for (const { policyPart, ttlMs } of keys) {
      const owners =
        policyPart === undefined
          ? policies
          : policies.filter(({ id }) => policyPart.startsWith(`${id}~`))
      expect(owners, policyPart).not.toEqual([])
      // A state that has ended may wait to be deleted where that takes nothing but room.
      if (policyPart !== undefined) expect(ttlMs, policyPart).toBeGreaterThan(0)
      expect(ttlMs, policyPart).toBeLessThanOrEqual(Math.max(...owners.map(longestTtlMs)))
    }
  }
})

/** How long a key may live, by a clock that is not Redis' own, and limits from 1 up to twice the declared one and one more. */
function longestTtlMs(policy: Policy): number {
  const marginMs = 10_000
  const { algorithm, windowMs, penalty } = policy
  if (algorithm !== 'penalty') return testedAlgorithms[algorithm].maxTtlMs(policy) + marginMs
  const { maxMs } = penalty ?? { maxMs: 0 }
  return Math.max(maxMs, 3_600_000) + Math.max(maxMs, windowMs) + marginMs
}
