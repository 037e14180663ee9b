import { createLimiter, type ResilienceEvent } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { TroubledStore } from './troubled-store.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
})

afterEach(() => {
  vi.useRealTimers()
})

const quota = 8
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ what: fc.constant('consume' as const), key: fc.nat(2) }) },
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

/** All within one window of ten minutes; every call is answered in the end, in the order in which they were made. */
it('an outage adds at most one limit, and when it is over the store knows of all that was admitted', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const store = new TroubledStore()
      const events: ResilienceEvent[] = []
      const limiter = createLimiter({
        name: 'p',
        limit: quota,
        window: '10m',
        store,
        onStoreError: () => undefined,
        onResilience: (event) => events.push(event),
      })
      const admitted = [0, 0, 0]
      const waiting: Promise<unknown>[] = []
      const wake = (): void => {
        for (const call of store.calls) call.answer()
      }
      for (const one of steps) {
        if (one.what === 'mood') store.mood = one.mood
        if (one.what === 'wake') wake()
        if (one.what === 'pass') await vi.advanceTimersByTimeAsync(one.ms)
        if (one.what !== 'consume') continue
        const decided = limiter.consume(String(one.key)).then(({ allowed }) => {
          if (allowed) admitted[one.key] = (admitted[one.key] ?? 0) + 1
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
        expect(count).toBeLessThanOrEqual(2 * quota)
        const { outcomes, source } = await limiter.peek(String(key))
        expect(source).toBe('store')
        const left = Math.max(0, quota - count)
        expect(outcomes[0]?.remaining).toBeLessThanOrEqual(left)
        // A refund that is rejected is not tried again, since it may have been done: then the units stay taken.
        if (!store.calls.some(({ op }) => op === 'refund'))
          expect(outcomes[0]?.remaining).toBe(left)
      }
    }),
    { numRuns: 500 },
  )
})
