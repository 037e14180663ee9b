import type { Decision, PolicyFields } from '@sluice/core'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { beginEach } from '../core/resilience/troubled-store.ts'
import { checkOf } from '../support/patient-limiter.ts'
import { scaled } from '../support/scale.ts'
import { weighted } from '../support/weighted.ts'
import { GrantingStore } from './granting-store.ts'

beginEach(() => undefined)

const key = fc.constantFrom('a', 'a', 'b')
const troubles = fc.constantFrom('answers', 'answers', 'hangs', 'rejects', 'loses')

const step = weighted(
  [6, fc.record({ consume: fc.integer({ min: 1, max: 40 }), key, cost: fc.constantFrom(1, 1, 3) })],
  [1, fc.record({ consume: fc.integer({ min: 1, max: 3 }), key, cost: fc.constantFrom(0, 50) })],
  [6, fc.record({ pass: fc.constantFrom(1, 4, 30, 200, 500, 1_000, 3_000) })],
  [3, fc.record({ refund: fc.nat() })],
  [1, fc.record({ trouble: troubles })],
  [1, fc.record({ wake: fc.constant(true) })],
  [1, fc.record({ limit: fc.constantFrom(1_000, 1_000, 400) })],
)

const limits = { window: '10m', limit: 1_000 } as const

interface Way {
  readonly way: string
  /** The operation that tells the store. */
  readonly late: 'grant' | 'charge'
  readonly policies: readonly Partial<PolicyFields>[]
}

/** Ways in which a process admits units, and tells the store later. */
const ways: readonly Way[] = [
  { way: 'prefetch', late: 'grant', policies: [{ ...limits, name: 'p', prefetch: '2s' }] },
  {
    way: 'async',
    late: 'charge',
    policies: [{ ...limits, name: 'p', async: { maxUncounted: 30 } }],
  },
  {
    way: 'prefetch beside another policy',
    late: 'grant',
    policies: [
      { ...limits, name: 'p', prefetch: '2s' },
      { ...limits, name: 'q', limit: 700 },
    ],
  },
]

it.each(ways)('the store counts all that was admitted by $way', async ({ late, policies }) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 50, size: 'max' }), async (steps) => {
      const store = new GrantingStore()
      const limiter = store.limiter({ policies })
      const asking = store.limiter({ policies: [{ ...policies[0], async: undefined }] })
      const [policy, other] = limiter.policies
      const taken: { readonly key: string; readonly decision: Decision }[] = []
      const waiting: Promise<unknown>[] = []
      const used: Record<string, number> = { a: 0, b: 0 }
      let limit = 1_000
      let [refused, back] = [0, 0]
      // With async, more may pass than the limit, and the store hears of as much as the limit.
      const lowest = Math.min(1_000, ...steps.map((one) => ('limit' in one ? one.limit : 1_000)))
      const most = late === 'grant' ? Infinity : lowest
      for (const one of steps) {
        if ('pass' in one) await vi.advanceTimersByTimeAsync(one.pass)
        if ('trouble' in one) store.moods[late] = one.trouble
        if ('wake' in one) await store.release()
        if ('limit' in one) limit = one.limit
        if ('refund' in one) {
          const [some] = taken.splice(one.refund % Math.max(1, taken.length), 1)
          if (!some) continue
          const { cost = 0 } = some.decision.outcomes[0]?.receipt?.check ?? {}
          used[some.key] = (used[some.key] ?? 0) - cost
          back += cost
          const refund = async () => {
            // One of the policies may refuse it.
            if (!(await limiter.refund(some.decision)) || other) refused += cost
          }
          waiting.push(refund())
        }
        if (!('consume' in one)) continue
        const { consume: times, key, cost } = one
        const checks = [checkOf(policy, { key, cost, limit })]
        if (other) checks.push(checkOf(other, { key, cost }))
        for (let i = 0; i < times; i += 1) {
          const decision = await limiter.decide(checks)
          if (!decision.allowed || cost === 0) continue
          used[key] = (used[key] ?? 0) + cost
          taken.push({ key, decision })
        }
      }
      delete store.moods[late]
      await store.release()
      for (let i = 0; i < 12; i += 1) {
        for (const key of ['a', 'b']) await asking.peek(key)
        await vi.advanceTimersByTimeAsync(1_000)
      }
      await store.release()
      await Promise.all(waiting)
      const { hotKeys, uncountedUnits, keysOwed, isAway, grants } = limiter.storeHealth()
      expect({ hotKeys, keysOwed, isAway }).toEqual({ hotKeys: 0, keysOwed: 0, isAway: false })
      // Units of a debt that came back stay uncounted until the window ends.
      expect(uncountedUnits).toBeGreaterThanOrEqual(0)
      expect(uncountedUnits).toBeLessThanOrEqual(back)
      expect(grants.spent + grants.returned + grants.lapsed).toBe(grants.taken)
      for (const [key, units] of Object.entries(used)) {
        const outcomes = store.memory.apply(
          'peek',
          limiter.policies.map((each) => checkOf(each, { key })),
        )
        const counted = limits.limit - (outcomes[0]?.remaining ?? 0)
        expect(counted, key).toBeGreaterThanOrEqual(Math.min(units, most))
        if (!steps.some((one) => 'trouble' in one))
          expect(counted, key).toBeLessThanOrEqual(units + grants.lapsed + refused)
        if (other) expect(limits.limit - 300 - (outcomes[1]?.remaining ?? 0)).toBe(units)
      }
      // The deadlines of the last questions pass, and nothing else is left to do.
      await vi.advanceTimersByTimeAsync(70_000)
      expect(vi.getTimerCount()).toBe(0)
    }),
    { numRuns: scaled(25, 500) },
  )
})
