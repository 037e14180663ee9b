import {
  type AlgorithmName,
  algorithmNames,
  type Decision,
  type Limiter,
  memoryStore,
} from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { fakeTime } from '../support/fake-time.ts'
import { limiterOf } from '../support/patient-limiter.ts'
import { scaled } from '../support/scale.ts'
import { type Drawn, weighted } from '../support/weighted.ts'
import { algorithmPolicy, testedAlgorithms } from './algorithm-policy.ts'

// In memory: that all stores give back alike is proven by the differential.

/** A multiple of the window. */
const start = 1_795_195_800_000
const maxCost = Number.MAX_SAFE_INTEGER

fakeTime(['Date'], { now: start })

const cases = fc.constantFrom(1, 2, 5, 10, 200).chain((limit) =>
  fc.record({
    limit: fc.constant(limit),
    resolution: fc.constantFrom(1, 10_000),
    countDenied: fc.boolean(),
    steps: fc.array(
      fc.record({
        op: fc.constantFrom('consume', 'consume', 'charge', 'refund', 'refund'),
        cost: weighted(
          [6, fc.integer({ min: 1, max: limit + 1 })],
          [1, fc.constantFrom(2 * limit, maxCost)],
        ),
        // For a refund, of which decision so far, modulo their number.
        settles: fc.nat(),
        elapsedMs: fc.constantFrom(0, 0, 0, 1),
      }),
      { minLength: 1, maxLength: 25 },
    ),
  }),
)

describe('a refund', () => {
  it.each(algorithmNames)(
    'admits nothing in place of units that somebody else has, whatever is given back: %s',
    async (algorithm) => {
      await fc.assert(
        fc.asyncProperty(cases, async (one) => {
          vi.setSystemTime(start)
          const own = { limit: one.limit, window: '1m', ...optionsOf(algorithm, one) } as const
          const policies = [algorithmPolicy(algorithm, own)]
          await play(algorithm, one, limiterOf({ store: memoryStore(), policies }))
        }),
        { numRuns: scaled(50, 300) },
      )
    },
  )

  it('releases leases completely or not at all', async () => {
    const limiter = limiterOf({ algorithm: 'concurrency', limit: 10 })
    const decision = await limiter.consume('k', { cost: 8 })
    expect(await limiter.refund(decision, { units: 3 })).toBe(false)
    expect((await limiter.peek('k')).remaining).toBe(2)
    expect(await limiter.refund(decision)).toBe(true)
  })

  it('of a fractional number of units is rejected', async () => {
    const limiter = limiterOf({ limit: 5, window: '1m' })
    const decision = await limiter.consume('k', { cost: 2 })
    expect(await limiter.refund(decision, { units: 0 })).toBe(false)
    const code = 'SLUICE_COST_INVALID'
    for (const units of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(limiter.refund(decision, { units })).rejects.toMatchObject({ code })
    }
    expect(await limiter.refund(decision)).toBe(true)
  })
})

function optionsOf(
  algorithm: AlgorithmName,
  { resolution, countDenied }: Drawn<typeof cases>,
): object {
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
  { limit, countDenied, steps }: Drawn<typeof cases>,
  limiter: Limiter,
) {
  const isLease = algorithm === 'concurrency'
  const taken: Taken[] = []
  let counted = 0
  let highest = 0
  for (const { op, cost, settles, elapsedMs } of steps) {
    vi.advanceTimersByTime(elapsedMs)
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
