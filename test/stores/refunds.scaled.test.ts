import { type AlgorithmName, algorithmNames, type Decision, type Limiter } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { weighted } from '../support/weighted.ts'
import { algorithmPolicy, testedAlgorithms } from './algorithm-policy.ts'
import {
  memoryDriver,
  type OpenedStore,
  packedDriver,
  postgresDriver,
  runsOf,
  serverOf,
  sortedSetDriver,
} from './store-drivers.ts'

/** A multiple of the window. */
const start = 1_795_195_800_000
const maxCost = Number.MAX_SAFE_INTEGER

let now: number
let opened: OpenedStore

interface Step {
  readonly op: 'consume' | 'charge' | 'refund'
  readonly cost: number
  /** For a refund, of which decision so far, modulo their number. */
  readonly settles: number
  readonly elapsedMs: number
}

interface Case {
  readonly limit: number
  readonly resolution: number
  readonly countDenied: boolean
  readonly steps: readonly Step[]
}

const cases: fc.Arbitrary<Case> = fc.constantFrom(1, 2, 5, 10, 200).chain((limit) =>
  fc.record({
    limit: fc.constant(limit),
    resolution: fc.constantFrom(1, 10_000),
    countDenied: fc.boolean(),
    steps: fc.array(
      fc.record({
        op: fc.constantFrom<Step['op']>('consume', 'consume', 'charge', 'refund', 'refund'),
        cost: weighted(
          [6, fc.integer({ min: 1, max: limit + 1 })],
          [1, fc.constantFrom(2 * limit, maxCost)],
        ),
        settles: fc.nat(),
        elapsedMs: fc.constantFrom(0, 0, 0, 1),
      }),
      { minLength: 1, maxLength: 25 },
    ),
  }),
)

describe.each([memoryDriver, postgresDriver, packedDriver, sortedSetDriver])('$name', (driver) => {
  const server = serverOf(driver)

  beforeEach(async () => {
    now = start
    opened = await server.open(() => now)
  })

  afterEach(() => opened.close())

  describe.each(algorithmNames)('%s', (algorithm) => {
    let named = 0

    function limiterOf(limit: number, more: object = {}): Limiter {
      named += 1
      const policy = { name: `p${named}`, limit, window: '1m', ...more } as const
      return patientLimiter({
        store: opened.store,
        policies: [algorithmPolicy(algorithm, policy)],
      })
    }

    it('admits nothing in place of units that somebody else has, whatever is given back', async () => {
      await fc.assert(
        fc.asyncProperty(cases, async (one) => {
          now = start
          await play(algorithm, one, limiterOf(one.limit, optionsOf(algorithm, one)))
        }),
        { numRuns: runsOf(driver, { memory: 300, server: driver === postgresDriver ? 5 : 30 }) },
      )
    })
  })

  it('gives leases back whole or not at all', async () => {
    const policy = { name: 'l', algorithm: 'concurrency', limit: 10 } as const
    const limiter = patientLimiter({ store: opened.store, policies: [policy] })
    const decision = await limiter.consume('k', { cost: 8 })
    expect(await limiter.refund(decision, { units: 3 })).toBe(false)
    expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(2)
    expect(await limiter.refund(decision)).toBe(true)
  })

  it('refuses units that are no whole number', async () => {
    const limiter = patientLimiter({ store: opened.store, limit: 5, window: '1m' })
    const decision = await limiter.consume('k', { cost: 2 })
    expect(await limiter.refund(decision, { units: 0 })).toBe(false)
    for (const units of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(limiter.refund(decision, { units })).rejects.toMatchObject({
        code: 'SLUICE_COST_INVALID',
      })
    }
    expect(await limiter.refund(decision)).toBe(true)
  })
})

function optionsOf(algorithm: AlgorithmName, { resolution, countDenied }: Case): object {
  if (algorithm === 'concurrency') return {}
  return algorithm === 'sliding-log' ? { resolution, countDenied } : { countDenied }
}

/** What one decision took, and has not given back. */
interface Taken {
  readonly decision: Decision
  units: number
}

/** Plays a case far within one window, and compares each answer with the sum of what was taken and not given back. */
async function play(
  algorithm: AlgorithmName,
  { limit, countDenied, steps }: Case,
  limiter: Limiter,
) {
  const isLease = algorithm === 'concurrency'
  const taken: Taken[] = []
  let counted = 0
  let highest = 0
  for (const { op, cost, settles, elapsedMs } of steps) {
    now += elapsedMs
    const used = counted + taken.reduce((sum, { units }) => sum + units, 0)
    highest = Math.max(highest, used)
    if (op === 'refund') {
      const chosen = taken[settles % Math.max(1, taken.length)]
      if (!chosen) continue
      await limiter.refund(chosen.decision, isLease ? {} : { units: cost })
      chosen.units = isLease ? 0 : Math.max(0, chosen.units - cost)
      continue
    }
    const decision = await limiter[op]('k', { cost })
    if (decision.allowed) {
      if (op === 'consume') expect(used + cost).toBeLessThanOrEqual(limit)
      taken.push({ decision, units: isLease ? Math.min(cost, limit) : cost })
    } else if (countDenied && !isLease) counted += cost
    // Nothing was lost so far: then the answer is exact.
    if (highest <= exactUpTo(algorithm, limit) && op === 'consume') {
      expect(decision.allowed).toBe(used + cost <= limit)
    }
  }
}

/** How many units are counted before some of them are lost. */
function exactUpTo(algorithm: AlgorithmName, limit: number): number {
  return testedAlgorithms[algorithm].maxRemembered?.(limit) ?? 2 ** 30
}
