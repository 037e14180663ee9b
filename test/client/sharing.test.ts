import { createFetch, type WaitEvent } from '@sluice/client'
import { describe, expect, it, vi } from 'vitest'
import { mostWithin } from '../support/most-within.ts'
import { type Arrival, limitedApi } from './limited-api.ts'
import {
  fakeTime,
  refusal,
  type Script,
  type ScriptedAnswer,
  scriptedApi,
  settled,
} from './scripted-api.ts'

fakeTime()

const origin = 'https://api.example.com'
const burst = { name: 'burst', limit: 50, window: '1s' } as const
const patience = { maxWaitMs: 600_000, maxTotalWaitMs: 600_000 }

const telling = (RateLimit: string): ScriptedAnswer => ({ headers: { RateLimit } })
const ofUser = (key: string, left: number) => `"user";r=${left};t=30;pk=:${btoa(key)}:`

function callMany(fetch: typeof globalThis.fetch, count: number, path = '/items') {
  return settled(Promise.all(Array.from({ length: count }, () => fetch(origin + path))))
}

function timesOf(arrivals: readonly Arrival[]): readonly number[] {
  return arrivals.map(({ atMs }) => atMs)
}

function tookMs({ arrivals }: { readonly arrivals: readonly Arrival[] }): number {
  return (arrivals.at(-1)?.atMs ?? 0) - (arrivals[0]?.atMs ?? 0)
}

/** A path without digits, which is a route of its own. */
function wordOf(index: number): string {
  return [...String(index)].map((digit) => 'abcdefghij'[Number(digit)]).join('')
}

describe('parallel calls', () => {
  it('wait together, and resume no faster than the policy', async () => {
    const api = limitedApi({ policiesOf: () => [burst] })
    const responses = await callMany(createFetch({ fetch: api.fetch }), 200)
    expect(responses.every(({ ok }) => ok)).toBe(true)
    expect(api.arrivals).toHaveLength(350)

    const returning = api.arrivals.slice(200)
    expect(returning.every(({ status }) => status === 200)).toBe(true)
    expect(mostWithin(timesOf(returning), 1000)).toBeLessThanOrEqual(50)
    expect(returning.at(-1)?.atMs).toBeLessThan((api.arrivals[0]?.atMs ?? 0) + 4000)
  })

  it.each<['sliding-log' | 'fixed-window', number]>([
    ['sliding-log', 0],
    ['sliding-log', 300],
    ['fixed-window', 0],
  ])('resume when their units are back, unrefused: %s, %s ms', async (algorithm, spreadMs) => {
    const minute = { name: 'minute', limit: 100, window: '1m', algorithm } as const
    const api = limitedApi({ policiesOf: () => [minute], spreadMs })
    await callMany(createFetch({ fetch: api.fetch, ...patience }), 300)
    expect(api.arrivals).toHaveLength(500)
    // Two windows, the jitter of the first, and the bursts; evenly spaced it would be 190 s.
    expect(tookMs(api)).toBeLessThan(137_000)
  })

  it('resume while units come back one by one', async () => {
    const minute = { name: 'minute', limit: 100, window: '1m' } as const
    const api = limitedApi({ policiesOf: () => [minute] })
    const fetch = createFetch({ fetch: api.fetch, ...patience })
    const calls: Promise<Response>[] = []
    for (let call = 0; call < 100; call++) {
      calls.push(fetch(origin))
      await vi.advanceTimersByTimeAsync(50)
    }
    for (let call = 0; call < 100; call++) calls.push(fetch(origin))
    await settled(Promise.all(calls))
    expect(api.arrivals).toHaveLength(300)
    expect(tookMs(api)).toBeLessThan(72_000)
  })

  it('of several processes burst gradually, so that few are refused again', async () => {
    // The same jitter in every run, spread as evenly as chance spreads it on average.
    let drawn = 0
    vi.spyOn(Math, 'random').mockImplementation(() => (++drawn * 0.618_034) % 1)
    const minute = { name: 'minute', limit: 60, window: '1m' } as const
    const api = limitedApi({ policiesOf: () => [minute] })
    const clients = [1, 2, 3, 4].map(() =>
      createFetch({ fetch: (...call) => api.fetch(...call), ...patience, retries: 20 }),
    )
    const calls = clients.map((fetch) => Array.from({ length: 60 }, () => fetch(origin)))
    await settled(Promise.all(calls.flat()))
    // 180 of the first herd, and then hardly more than one of each process and window.
    expect(api.arrivals.filter(({ status }) => status === 429).length).toBeLessThan(195)
  })

  it('do not speed up if refusals of one burst arrive one by one', async () => {
    const api = limitedApi({ policiesOf: () => [burst], latencyMs: 40, spreadMs: 200 })
    await callMany(createFetch({ fetch: api.fetch }), 200)
    expect(mostWithin(timesOf(api.arrivals.slice(200)), 1000)).toBeLessThanOrEqual(55)
    expect(api.arrivals.length).toBeLessThanOrEqual(356)
  })

  it('go slower when they are refused again', async () => {
    // Each call costs five of the fifty units that the policy shows, so that ten a second get through.
    const api = limitedApi({ policiesOf: () => [burst], cost: 5, latencyMs: 50 })
    await callMany(createFetch({ fetch: api.fetch, retries: 30, maxTotalWaitMs: 600_000 }), 200)
    const refused = api.arrivals.slice(200).filter(({ status }) => status === 429)
    // 20; at an even distance of 22 ms it would be 90.
    expect(refused.length).toBeLessThan(40)
  })

  it('wait together across clients', async () => {
    const api = scriptedApi(refusal(10), {})
    await createFetch({ fetch: api.fetch, retries: 0 })(`${origin}/items`)
    await settled(createFetch({ fetch: api.fetch })(`${origin}/items`))
    expect(api.times()[1]).toBeGreaterThanOrEqual(10_000)
  })

  it('are separated by their fetch function', async () => {
    const api = scriptedApi(refusal(10), {})
    await createFetch({ fetch: api.fetch, retries: 0 })(`${origin}/items`)
    await createFetch({ fetch: (...call) => api.fetch(...call) })(`${origin}/items`)
    expect(api.times()).toEqual([0, 0])
  })

  it('are separated by credentials and by origin', async () => {
    const api = scriptedApi(refusal(50), {})
    const fetch = createFetch({ fetch: api.fetch, retries: 0 })
    await fetch(`${origin}/items`)
    await fetch(`${origin}/items`, { headers: { Authorization: 'Bearer a' } })
    await fetch(`${origin}/items`, { headers: { 'X-API-Key': 'a' } })
    await fetch(`${origin}/items`, { headers: { Cookie: 'session=a' } })
    await fetch('https://other.example.com/items')
    expect(api.times()).toEqual([0, 0, 0, 0, 0])
  })

  it('are shared or not, depending on `key`', async () => {
    const together = scriptedApi(refusal(50), {})
    const one = createFetch({ fetch: together.fetch, retries: 0, key: () => 'one' })
    await one(`${origin}/items`)
    await settled(one(`${origin}/items`, { headers: { Authorization: 'Bearer a' } }))
    expect(together.times()[1]).toBeGreaterThanOrEqual(50_000)

    const apart = scriptedApi(refusal(50), {})
    const alone = createFetch({ fetch: apart.fetch, retries: 0, key: () => undefined })
    await alone(`${origin}/items`)
    await alone(`${origin}/items`)
    expect(apart.times()).toEqual([0, 0])
  })

  it('are answered from what is known, without a request, when the line is too long', async () => {
    const api = limitedApi({ policiesOf: () => [{ name: 'slow', limit: 1, window: '2s' }] })
    const responses = await callMany(createFetch({ fetch: api.fetch, maxWaitMs: 5000 }), 20)
    expect(responses.filter(({ ok }) => ok).length).toBeGreaterThan(1)
    expect(responses.filter(({ ok }) => !ok).length).toBeGreaterThan(1)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('policies', () => {
  const site = { name: 'site', limit: 3, window: '20s' } as const

  it('of several routes also block a route that was never called', async () => {
    const api = limitedApi({ policiesOf: () => [site] })
    const events: WaitEvent[] = []
    const onWait = (event: WaitEvent) => events.push(event)
    const fetch = createFetch({ fetch: api.fetch, retries: 0, observers: { onWait } })
    for (const path of ['/a', '/b', '/c', '/d']) await settled(fetch(origin + path))
    expect(api.arrivals.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    await settled(fetch(`${origin}/e`))
    expect(api.arrivals.at(-1)?.status).toBe(200)
    expect(events).toMatchObject([{ reason: 'held', tries: 0, policies: ['site'] }])
  })

  it('keep a route closed although a late response does not name them', async () => {
    const one = (limit: number, left: number) => `limit=${limit}, remaining=${left}, reset=30`
    const size = { 'RateLimit-Policy': '100;w=30' }
    const answers = [
      { status: 429, headers: { RateLimit: one(5, 0), 'RateLimit-Policy': '5;w=30' } },
      { headers: { RateLimit: one(100, 50), ...size } },
    ]
    const times: number[] = []
    const send = async (): Promise<Response> => {
      const index = times.push(performance.now()) - 1
      const { status = 200, headers = {} } = answers[index] ?? {}
      await new Promise((resolve) => setTimeout(resolve, index === 1 ? 500 : 100))
      return new Response('', { status, headers })
    }
    const fetch = createFetch({ fetch: send, retries: 0 })
    await settled(Promise.all([fetch(`${origin}/items`), fetch(`${origin}/items`)]))
    await settled(fetch(`${origin}/items`))
    expect(times[2]).toBeGreaterThanOrEqual(30_000)
  })

  it.each([
    ['a route', undefined],
    ['a policy', '"a";r=0;t=50'],
  ])('keep their gates closed, however many others are seen: %s', async (_, limit) => {
    const answers = Array.from({ length: 1500 }, (_, index) => telling(`"p${index}";r=5;t=9`))
    const api = scriptedApi(refusal(50, limit ? { RateLimit: limit } : {}), ...answers)
    const fetch = createFetch({ fetch: api.fetch, retries: 0 })
    await fetch(`${origin}/items`)
    for (const index of answers.keys()) await fetch(`${origin}/${wordOf(index)}`)
    await settled(fetch(`${origin}/items`))
    expect(api.times().at(-1)).toBeGreaterThanOrEqual(50_000)
  })

  it('that are too many to remember still block the refused calls', async () => {
    const refusals = Array.from({ length: 1200 }, () => refusal(50))
    const api = scriptedApi(...refusals, {})
    const fetch = createFetch({ fetch: api.fetch })
    await settled(Promise.all(refusals.map((_, index) => fetch(`${origin}/${wordOf(index)}`))))
    expect(Math.min(...api.times().slice(1200))).toBeGreaterThanOrEqual(50_000)
  })

  it('keep the gates of a key closed, however many other keys there are', async () => {
    const api = scriptedApi(refusal(50), {})
    const fetch = createFetch({ fetch: api.fetch, retries: 0 })
    await fetch(`${origin}/items`)
    for (let key = 0; key < 1100; key++) {
      await fetch(`${origin}/items`, { headers: { Authorization: `${key}` } })
    }
    await settled(fetch(`${origin}/items`))
    expect(api.times().at(-1)).toBeGreaterThanOrEqual(50_000)
  })
})

/** Calls paths one after the other. @returns when each was sent */
async function sentMs(paths: readonly string[], ...answers: Script[]): Promise<number[]> {
  vi.spyOn(Math, 'random').mockReturnValue(0)
  const api = scriptedApi(...answers)
  const fetch = createFetch({ fetch: api.fetch, retries: 0 })
  for (const path of paths) await settled(fetch(origin + path))
  return api.times()
}

describe('one call after the other', () => {
  const inTurn = ['/cheap', '/costly', '/cheap', '/costly']

  it.each<[what: string, answers: Script[], times: number[]]>([
    [
      'policies that refuse together hold each for as long as it says itself',
      [telling('"b";r=1;t=5'), refusal(40, { RateLimit: '"a";r=0;t=40, "b";r=0;t=5' }), {}],
      [0, 0, 5000, 40_000],
    ],
    [
      'a policy with something left holds nobody, though another one refuses',
      [
        telling('"site";r=2;t=5'),
        refusal(50, { RateLimit: '"site";r=1;t=20, "login";r=0;t=50' }),
        {},
      ],
      [0, 0, 0, 50_000],
    ],
    [
      'a policy with nothing left is not closed for the wait of one that is not shown',
      [telling('"site";r=1;t=5'), refusal(50, { RateLimit: '"site";r=0;t=5' }), {}],
      [0, 0, 5000, 50_000],
    ],
    [
      'a policy is closed for the jitter that a server adds, too',
      [telling('"site";r=1;t=5'), refusal(33, { RateLimit: '"site";r=0;t=30' }), {}],
      [0, 0, 33_000, 33_050],
    ],
    [
      'policies that the problem document alone names are the ones that hold',
      [
        telling('"a";r=9;t=9'),
        {
          ...refusal(30, {
            RateLimit: '"a";r=8;t=9, "b";r=3;t=30',
            'Content-Type': 'application/problem+json; charset=utf-8',
          }),
          body: '{"type":"about:blank","status":429,"violated-policies":["b"]}',
        },
        {},
      ],
      [0, 0, 0, 30_000],
    ],
    [
      'a policy that counts in several partitions has a gate for each',
      [telling(ofUser('b', 5)), { status: 429, ...telling(ofUser('a', 0)) }, {}],
      [0, 0, 0, 30_000],
    ],
  ])('%s', async (_what, answers, times) => {
    expect(await sentMs(inTurn, ...answers)).toEqual(times)
  })

  it.each([
    ['/users/42', '/users/43', 30_000],
    ['/orders/ord_1a2b3c', '/orders/ord_9z8y7x', 30_000],
    ['/f/3f2504e0-4f89-11d3-9a0c-0305e82c3301', '/f/0e37df36-f698-11e6-8dd4-cb9ced3df976', 30_000],
    ['/v1/users/42/posts', '/v1/users/7/posts', 30_000],
    ['/2026-11-21/report', '/2026-11-22/report', 30_000],
    ['/users/42', '/users', 0],
    ['/v1/items', '/v2/items', 0],
    ['/v1.1/items', '/v1.2/items', 0],
    ['/v1beta1/items', '/v1beta2/items', 0],
    ['/s3/list', '/ec2/list', 0],
    ['/oauth2/token', '/k8s/token', 0],
  ])('a refusal of %s, without a name, holds %s for %i ms', async (first, second, heldMs) => {
    expect(await sentMs([first, second], refusal(30), {})).toEqual([0, heldMs])
  })
})
