import { createFetch } from '@sluice/client'
import { describe, expect, it, vi } from 'vitest'
import { limitedApi } from './limited-api.ts'
import { fakeTime, refusal, type ScriptedAnswer, scriptedApi, settled } from './scripted-api.ts'

fakeTime()

const origin = 'https://api.example.com'
const burst = { name: 'burst', limit: 50, window: '1s' } as const

describe('pacing', () => {
  const slow = { name: 'slow', limit: 10, window: '10s' } as const

  const algorithms = ['sliding-log', 'sliding-counter', 'fixed-window', 'token-bucket'] as const
  it.each(algorithms)('prevents refusals for a client without pauses: %s', async (algorithm) => {
    const api = limitedApi({ policiesOf: () => [{ ...slow, algorithm }] })
    const fetch = createFetch({ fetch: api.fetch, pace: true })
    for (let call = 0; call < 40; call++) await settled(fetch(`${origin}/items`))
    expect(api.arrivals.filter(({ status }) => status === 429)).toEqual([])
  })

  const exact = ['sliding-log', 'token-bucket'] as const
  it.each(exact)('sends parallel calls at the rate, unrefused: %s', async (algorithm) => {
    const startMs = performance.now()
    const api = limitedApi({ policiesOf: () => [{ ...burst, algorithm }] })
    const fetch = createFetch({ fetch: api.fetch, pace: true })
    await settled(Promise.all(Array.from({ length: 200 }, () => fetch(`${origin}/items`))))
    expect(api.arrivals).toHaveLength(200)
    // Half of the first fifty at once, half over its window, the others at 45 a second.
    expect(performance.now() - startMs).toBeLessThan(5000)
  })

  it('counts calls that have no answer yet', async () => {
    const api = limitedApi({ policiesOf: () => [slow], latencyMs: 1000 })
    const fetch = createFetch({ fetch: api.fetch, pace: true, maxTotalWaitMs: 600_000 })
    const calls = [fetch(`${origin}/items`)]
    await vi.advanceTimersByTimeAsync(2500)
    for (let call = 0; call < 40; call++) {
      calls.push(fetch(`${origin}/items`))
      await vi.advanceTimersByTimeAsync(100)
    }
    await settled(Promise.all(calls))
    expect(api.arrivals.map(({ status }) => status)).not.toContain(429)
  })

  it('continues if the first call on a route fails', async () => {
    const api = scriptedApi(new TypeError('one'), new TypeError('two'), {})
    const fetch = createFetch({ fetch: api.fetch, pace: true, retries: 0 })
    const calls = Promise.allSettled([1, 2, 3, 4].map(() => fetch(`${origin}/items`)))
    const results = await settled(calls)
    expect(results.map(({ status }) => status === 'rejected')).toEqual([true, true, false, false])
    expect(vi.getTimerCount()).toBe(0)
  })

  function hourly(limit: number) {
    const size = { 'RateLimit-Policy': `"hour";q=${limit};w=3600` }
    const answers = Array.from({ length: limit }, (_, used): ScriptedAnswer => {
      return { headers: { ...size, RateLimit: `"hour";r=${limit - used - 1};t=3600` } }
    })
    return scriptedApi(...answers, refusal(3600))
  }

  it('refuses nothing itself while units remain', async () => {
    const api = hourly(60)
    const fetch = createFetch({ fetch: api.fetch, pace: true })
    const statuses: number[] = []
    for (let call = 0; call < 40; call++) statuses.push((await settled(fetch(origin))).status)
    expect(statuses).toEqual(Array.from({ length: 40 }, () => 200))
    expect(api.sent).toHaveLength(40)
    // The second half is slowed down, but not by the minutes that an hour would spread it over.
    const slowMs = (api.times()[39] ?? 0) - (api.times()[31] ?? 0)
    expect(slowMs).toBeGreaterThan(8 * 5000)
    expect(slowMs).toBeLessThanOrEqual(8 * 10_000)
  })

  it('rejects calls immediately whose paced wait exceeds their maximum', async () => {
    const fetch = createFetch({ fetch: hourly(60).fetch, pace: true, maxTotalWaitMs: 5000 })
    for (let call = 0; call < 31; call++) await settled(fetch(origin))
    const responses = await settled(Promise.all(Array.from({ length: 20 }, () => fetch(origin))))
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200))
  })

  const spentFor = (s: number): ScriptedAnswer => {
    return { headers: { RateLimit: `"day";r=0;t=${s}`, 'RateLimit-Policy': '"day";q=9;w=86400' } }
  }

  it('calls the server again if the reset is later than its maximum wait', async () => {
    const api = scriptedApi(spentFor(86_400), {})
    const fetch = createFetch({ fetch: api.fetch, pace: true })
    await fetch(origin)
    expect((await settled(fetch(origin))).status).toBe(200)
    expect(api.times()).toEqual([0, 0])
  })

  it('stays away from a reset by a few seconds at most', async () => {
    const api = scriptedApi(spentFor(50_000), {})
    const patience = { maxWaitMs: 90_000_000, maxTotalWaitMs: 90_000_000 }
    const fetch = createFetch({ fetch: api.fetch, pace: true, ...patience })
    await fetch(origin)
    await settled(fetch(origin))
    expect(api.times()[1]).toBeGreaterThan(50_000_000)
    expect(api.times()[1]).toBeLessThanOrEqual(50_002_000)
  })

  it('knows the limit from an answer before', async () => {
    const state = (left: number) => ({ headers: { RateLimit: `"a";r=${left};t=10` } })
    const sized = { headers: { ...state(99).headers, 'RateLimit-Policy': '"a";q=100;w=10' } }
    const api = scriptedApi(sized, state(3), state(2))
    const fetch = createFetch({ fetch: api.fetch, pace: true })
    for (let call = 0; call < 3; call++) await settled(fetch(origin))
    // Three are left of a hundred: that is not plenty.
    expect(api.times()[2]).toBeGreaterThan(1000)
  })
})
