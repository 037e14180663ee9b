import { createCheckLimiter, type Decision, type ResilienceEvent } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { scaled } from '../../support/scale.ts'
import { TroubledStore } from './troubled-store.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
})

afterEach(() => {
  vi.useRealTimers()
})

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ what: fc.constant('consume' as const), key: fc.nat(2) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constant('ask for a request' as const),
      key: fc.nat(2),
      request: fc.nat(2),
    }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('refund' as const), decision: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('pass' as const), ms: fc.nat(700) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('mood' as const),
      mood: fc.constantFrom('answers' as const, 'hangs' as const, 'rejects' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('wake' as const) }) },
)

/** One that is soon used up, and one that never is. */
const quotas = fc.constantFrom(8, 100)

/** All within one window of ten minutes; every call is answered in the end, in the order in which they were made. */
it('an outage adds at most one limit, and when it is over the store knows of all that was admitted', async () => {
  await fc.assert(
    fc.asyncProperty(
      quotas,
      fc.array(step, { maxLength: 60, size: 'max' }),
      async (quota, steps) => {
        const store = new TroubledStore()
        const events: ResilienceEvent[] = []
        const limiter = createCheckLimiter({
          name: 'p',
          limit: quota,
          window: '10m',
          store,
          observers: { onStoreError: () => undefined, onResilience: (event) => events.push(event) },
        })
        const [policy] = limiter.policies
        if (!policy) throw new Error('a policy')
        const requests = [{}, {}, {}]
        const decisions: { readonly key: number; readonly decision: Decision }[] = []
        const refunded = [0, 0, 0]
        const admitted = [0, 0, 0]
        const waiting: Promise<unknown>[] = []
        const wake = (): void => {
          for (const call of store.calls) call.answer()
        }
        for (const one of steps) {
          if (one.what === 'mood') store.mood = one.mood
          if (one.what === 'wake') wake()
          if (one.what === 'pass') await vi.advanceTimersByTimeAsync(one.ms)
          if (one.what === 'refund') {
            const [some] = decisions.splice(one.decision % Math.max(1, decisions.length), 1)
            if (!some) continue
            refunded[some.key] = (refunded[some.key] ?? 0) + 1
            waiting.push(limiter.refund(some.decision))
          }
          if (one.what !== 'consume' && one.what !== 'ask for a request') continue
          const { key } = one
          const check = { policy, key: String(key), cost: 1, limit: quota }
          const asked =
            one.what === 'consume'
              ? limiter.consume(String(key))
              : limiter.decide([check], requests[one.request])
          const decided = Promise.resolve(asked).then((decision) => {
            if (!decision.allowed) return
            admitted[key] = (admitted[key] ?? 0) + 1
            decisions.push({ key, decision })
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
        for (const [key, count] of admitted.entries()) {
          const kept = count - (refunded[key] ?? 0)
          if (kept === count) expect(count).toBeLessThanOrEqual(2 * quota)
          const { outcomes, source } = await limiter.peek(String(key))
          expect(source).toBe('store')
          const left = Math.max(0, quota - kept)
          const told = store.calls.filter(({ checks }) => checks[0]?.key === `${key}`)
          const isRefunded = told.some(({ op }) => op === 'refund')
          const units = told
            .filter(({ op }) => op === 'consume' || op === 'charge')
            .reduce((sum, { checks }) => sum + (checks[0]?.cost ?? 0), 0)
          // A store that is told of more than the limit forgets the oldest, and then gives back of the rest.
          if (isRefunded && units > quota) continue
          expect(outcomes[0]?.remaining).toBeLessThanOrEqual(left)
          // A refund that is rejected is not tried again, since it may have been done: then the units stay taken.
          if (!isRefunded) expect(outcomes[0]?.remaining).toBe(left)
        }
      },
    ),
    { numRuns: scaled(100, 500) },
  )
})
