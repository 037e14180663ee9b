import type { Decision } from '@sluice/core'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { checkOf } from '../../support/patient-limiter.ts'
import { scaled } from '../../support/scale.ts'
import { weighted } from '../../support/weighted.ts'
import { beginEach, TroubledStore } from './troubled-store.ts'

beginEach(() => undefined)

const key = fc.nat(2)
const cost = fc.constantFrom(1, 1, 1, 2, 3)

const some = <What extends string, Fields>(
  what: What,
  fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> },
) => fc.record<Fields>(fields).map((drawn) => ({ what, ...drawn }))
const units = fc.constantFrom(undefined, undefined, 1, 2)
const mood = fc.constantFrom('answers' as const, 'hangs' as const, 'rejects' as const)
const step = weighted(
  [6, some('consume', { key, cost })],
  [3, some('ask for a request', { key, cost, request: fc.nat(2) })],
  [1, some('charge', { key, cost })],
  [4, some('refund', { decision: fc.nat(), units })],
  [2, some('pass', { ms: fc.nat(700) })],
  [2, some('mood', { mood })],
  [4, fc.record({ what: fc.constantFrom('wake', 'lose', 'cut off', 'blink') })],
)

/** One that is soon used up, and one that never is. */
const quotas = fc.constantFrom(8, 100)

interface Account {
  admitted: number
  charged: number
  refunded: number
}

/**
 * All within one window of ten minutes. Every call is answered in the end, in the order in which they were made, or lost before it was
 * decided.
 */
it('an outage adds at most one limit, and afterwards the store knows of all admitted units', async () => {
  await fc.assert(
    fc.asyncProperty(
      quotas,
      fc.array(step, { maxLength: 60, size: 'max' }),
      async (quota, steps) => {
        const store = new TroubledStore()
        const limiter = store.limiter({ limit: quota, window: '10m' })
        const requests = [{}, {}, {}]
        const taken: { readonly account: Account; readonly decision: Decision; left: number }[] = []
        const accounts = [0, 1, 2].map((): Account => ({ admitted: 0, charged: 0, refunded: 0 }))
        const waiting: Promise<unknown>[] = []
        const wake = (): void => {
          for (const call of store.calls) call.answer()
        }
        for (const one of steps) {
          if (one.what === 'mood') store.mood = one.mood
          if (one.what === 'wake') wake()
          if (one.what === 'lose') for (const call of store.calls) call.fail(new Error('lost'))
          if (one.what === 'cut off') await store.cutOff(limiter)
          if (one.what === 'blink') await store.blink(limiter)
          if (one.what === 'pass') await vi.advanceTimersByTimeAsync(one.ms)
          if (one.what === 'refund') {
            const some = taken[one.decision % Math.max(1, taken.length)]
            if (!some) continue
            const units = Math.min(some.left, one.units ?? some.left)
            some.left -= units
            some.account.refunded += units
            waiting.push(limiter.refund(some.decision, one.units ? { units: one.units } : {}))
          }
          if (!('cost' in one)) continue
          const { key, cost } = one
          const account = accounts[key] as Account
          const check = checkOf(limiter.policies[0], { key: String(key), cost })
          const asked =
            one.what === 'ask for a request'
              ? limiter.decide([check], requests[one.request])
              : limiter[one.what](String(key), { cost })
          const decided = Promise.resolve(asked).then((decision) => {
            if (!decision.allowed) return
            account[one.what === 'charge' ? 'charged' : 'admitted'] += cost
            taken.push({ account, decision, left: cost })
          })
          waiting.push(decided)
          await vi.advanceTimersByTimeAsync(0)
        }
        store.mood = 'answers'
        wake()
        await vi.advanceTimersByTimeAsync(100)
        await Promise.all(waiting)
        for (let i = 0; i < 20; i += 1) {
          await limiter.peek('nobody')
          await vi.advanceTimersByTimeAsync(1_000)
        }
        for (const [key, { admitted, charged, refunded }] of accounts.entries()) {
          if (refunded === 0) expect(admitted).toBeLessThanOrEqual(2 * quota)
          const { outcomes, source } = await limiter.peek(String(key))
          expect(source).toBe('store')
          const told = store.calls.filter(({ checks }) => checks[0]?.key === `${key}`)
          const unitsOf = (...ops: readonly string[]) =>
            told
              .filter(({ op }) => ops.includes(op))
              .reduce((sum, { checks }) => sum + (checks[0]?.cost ?? 0), 0)
          const isRefunded = unitsOf('refund') > 0
          // A store that is told of more than the limit forgets the oldest, and then gives back of the rest.
          if (isRefunded && unitsOf('consume', 'charge') > quota) continue
          // Nor is it told of more than the limit at once: then a refund on the way gives back of what is told.
          const isCut = told.some(({ op, checks }) => op === 'charge' && checks[0]?.cost === quota)
          const untold = refunded > 0 && isCut ? Math.max(0, admitted + charged - quota) : 0
          const left = Math.max(0, quota - admitted - charged + refunded)
          expect(outcomes[0]?.remaining).toBeLessThanOrEqual(left + untold)
          if (untold > 0) continue
          // A refund that is rejected is not tried again, since it may have been done: then the units stay taken.
          const lost = told.filter(({ op, isLost }) => op === 'refund' && isLost)
          if (lost.length === 0) expect(outcomes[0]?.remaining).toBe(left)
        }
      },
    ),
    { numRuns: scaled(100, 500) },
  )
})
