import { createFetch } from '@sluice/client'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { scaled } from '../support/scale.ts'
import { fakeTime, type Script, scriptedApi, settled, url } from './scripted-api.ts'

fakeTime()

const seconds = fc.integer({ min: 0, max: 40 })

/** A refusal, and how long it says to wait; `undefined` where it does not say. */
const refusals = fc.oneof(
  seconds.map((s) => refusal(s, { 'Retry-After': `${s}` })),
  seconds.map((s) => refusal(s, { RateLimit: `"a";r=0;t=${s}` })),
  seconds.map((s) => refusal(s, { RateLimit: `limit=5, remaining=0, reset=${s}` })),
  seconds.map((s) => refusal(s, { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': `${s}` })),
  fc
    .tuple(seconds, seconds)
    .map(([s, t]) => refusal(s, { 'Retry-After': `${s}`, RateLimit: `"a";r=0;t=${t}` })),
  fc.constantFrom(500, 502, 503, 429).map((status) => ({ toldMs: undefined, script: { status } })),
)

function refusal(s: number, headers: Record<string, string>) {
  return { toldMs: s * 1000, script: { status: 429, headers } satisfies Script }
}

const options = fc.record({
  retries: fc.integer({ min: 0, max: 8 }),
  maxWaitMs: fc.integer({ min: 0, max: 60_000 }),
  maxTotalWaitMs: fc.integer({ min: 0, max: 200_000 }),
  backoffMs: fc.integer({ min: 0, max: 5000 }),
  maxBackoffMs: fc.integer({ min: 0, max: 20_000 }),
  jitterMs: fc.integer({ min: 0, max: 5000 }),
  pace: fc.boolean(),
})

describe('whatever a server says', () => {
  it('no request is early, jitter only adds, caps hold, and tries are counted', async () => {
    const property = fc.asyncProperty(
      fc.array(refusals, { maxLength: 10 }),
      options,
      async (told, settings) => {
        const api = scriptedApi(...told.map(({ script }) => script), {})
        const startMs = performance.now()
        await settled(createFetch({ fetch: api.fetch, ...settings })(url))

        const times = api.times()
        expect(times.length).toBeLessThanOrEqual(settings.retries + 1)
        expect(performance.now() - startMs).toBeLessThanOrEqual(settings.maxTotalWaitMs + 10)
        for (const [index, atMs] of times.slice(1).entries()) {
          const waitMs = atMs - (times[index] ?? 0)
          const toldMs = told[index]?.toldMs
          // After a refusal calls keep a distance, which is a wait of its own; fake timers count whole milliseconds.
          const distanceMs = 50 * 1.5 ** index + 1
          expect(waitMs).toBeLessThanOrEqual(settings.maxWaitMs + distanceMs)
          expect(waitMs).toBeGreaterThanOrEqual(toldMs ?? 0)
          const jitterMs = Math.max(settings.jitterMs, (toldMs ?? 0) / 10) * 2 ** index
          const addedMs = toldMs === undefined ? settings.backoffMs * 2 ** index : jitterMs
          const mostMs = Math.min(settings.maxBackoffMs, addedMs)
          expect(waitMs).toBeLessThanOrEqual((toldMs ?? 0) + mostMs + distanceMs)
        }
        expect(vi.getTimerCount()).toBe(0)
      },
    )
    await fc.assert(property, { numRuns: scaled(60, 300) })
  })

  it('a call aborted at any time ends immediately, and leaves no timer', async () => {
    const plan = fc.record({
      told: fc.array(refusals, { minLength: 1, maxLength: 5 }),
      calls: fc.integer({ min: 1, max: 5 }),
      abortMs: fc.integer({ min: 0, max: 60_000 }),
      pace: fc.boolean(),
    })
    const property = fc.asyncProperty(plan, async ({ told, calls, abortMs, pace }) => {
      const api = scriptedApi(...told.map(({ script }) => script))
      const controller = new AbortController()
      const fetch = createFetch({ fetch: api.fetch, pace })
      const { signal } = controller
      const all = Promise.allSettled(Array.from({ length: calls }, () => fetch(url, { signal })))
      await vi.advanceTimersByTimeAsync(abortMs)
      controller.abort(new Error('enough'))
      const sent = api.sent.length
      const results = await all
      expect(vi.getTimerCount()).toBe(0)
      expect(api.sent).toHaveLength(sent)
      for (const result of results) {
        if (result.status === 'rejected') expect(result.reason.message).toBe('enough')
      }
    })
    await fc.assert(property, { numRuns: scaled(40, 200) })
  })
})
