import { type ClientOptions, createFetch } from '@sluice/client'
import { describe, expect, it, vi } from 'vitest'
import { fakeTime, refusal, type Script, scriptedApi, settled, url } from './scripted-api.ts'

fakeTime({ random: 0 })

const now = Date.UTC(2026, 10, 21, 12)
const epoch = (ms: number): string => String((now + ms) / 1000)
const date = (ms: number): string => new Date(now + ms).toUTCString()

/** Makes one call, and says what came of it and when its requests were sent. */
async function called(script: readonly Script[], options: ClientOptions = {}) {
  const api = scriptedApi(...script)
  const { status } = await settled(createFetch({ fetch: api.fetch, ...options })(url))
  return { status, times: api.times() }
}

describe('a client that is refused', () => {
  it.each<[string, Record<string, string>, number]>([
    ['Retry-After in seconds', { 'Retry-After': '7' }, 7000],
    ['Retry-After as a date', { 'Retry-After': date(9000) }, 9000],
    ['draft-11', { RateLimit: '"a";r=0;t=4' }, 4000],
    ['draft-11, the policy that is spent', { RateLimit: '"a";r=0;t=4, "b";r=9;t=50' }, 4000],
    ['draft-11, the later of two', { RateLimit: '"a";r=0;t=4, "b";r=0;t=50' }, 50_000],
    ['an epoch', { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': epoch(8000) }, 8000],
    ['Retry-After before t', { 'Retry-After': '2', RateLimit: '"a";r=0;t=30' }, 2000],
    ['Retry-After after t', { 'Retry-After': '30', RateLimit: '"a";r=0;t=2' }, 30_000],
    ["a date by the server's clock", { Date: date(-60_000), 'Retry-After': date(-55_000) }, 5000],
    ['a date by its own clock', { Date: 'no HTTP date', 'Retry-After': date(5000) }, 5000],
    ['an epoch in the past, sent as Retry-After', { 'Retry-After': epoch(-1000) }, 0],
    ['an epoch to come, sent as Retry-After', { 'Retry-After': epoch(8000) }, 8000],
    ['nothing, as the answer is from a cache', { Age: '10', RateLimit: '"a";r=0;t=30' }, 0],
  ])('waits as instructed by %s', async (_, headers, expectedMs) => {
    const { status, times } = await called([{ status: 429, headers }, {}])
    expect([status, times]).toEqual([200, [0, expectedMs]])
  })

  it('notifies each observer, and continues if one throws or rejects', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    const [alone, listed] = [vi.fn(), vi.fn()]
    const broken = {
      onWait: () => {
        throw new Error('broken')
      },
      onGiveUp: () => Promise.reject(new Error('late')),
    }
    const observers = [broken, { onWait: listed, onGiveUp: listed }]
    expect((await called([refusal(1)], { retries: 1, observers })).status).toBe(429)
    expect(listed).toHaveBeenCalledTimes(2)
    expect(warn).toHaveBeenCalledOnce()
    await called([refusal(1), {}], { observers: { onWait: alone } })
    expect(alone).toHaveBeenCalledOnce()
  })

  it('reports the length of each wait, which is shorter if woken or aborted', async () => {
    const onWaited = vi.fn()
    const api = scriptedApi(refusal(7), {})
    const fetch = createFetch({ fetch: api.fetch, observers: [{ onWaited }] })
    const controller = new AbortController()
    const aborted = fetch(url, { signal: controller.signal }).catch(() => undefined)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(onWaited).not.toHaveBeenCalled()
    controller.abort()
    await settled(aborted)
    await settled(fetch(url))
    expect(onWaited.mock.calls).toMatchObject([
      [{ reason: 'server', waitMs: 7_000, waitedMs: 2_000 }],
      [{ reason: 'held', waitedMs: 5_000 }],
    ])
  })

  it('is never early, although timers are', async () => {
    const faked = globalThis.setTimeout
    vi.stubGlobal('setTimeout', (run: () => void, ms: number) => faked(run, Math.max(0, ms - 3)))
    const { times } = await called([refusal(7), {}])
    vi.stubGlobal('setTimeout', faked)
    expect(times).toEqual([0, 7000])
  })

  const busy = [408, 425, 429, 500, 502, 503, 504]
  it.each<[string, Script]>([
    ...busy.map((status): [string, Script] => [`${status}`, { status }]),
    ['a network that fails', new TypeError('fetch failed')],
    ['500 with a quota', { status: 500, headers: { RateLimit: '"a";r=5;t=60' } }],
  ])('backs off with full jitter when told nothing: %s', async (_, answer) => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { times } = await called([answer, answer, answer, {}], { backoffMs: 1000 })
    expect(times).toEqual([0, 500, 1500, 3500])
  })

  const capped = { backoffMs: 1000, maxBackoffMs: 1500, retries: 3 }
  const tight = { maxWaitMs: 50_100 }
  const thrice = [refusal(1), refusal(1), refusal(1)]

  it.each<[string, Script[], ClientOptions, number[]]>([
    ['adds jitter of at least 250 ms', [refusal(1), {}], {}, [0, 1250]],
    ['adds a tenth of a long wait as jitter', [refusal(50), {}], {}, [0, 55_000]],
    ['adds jitter to a wait of nothing as well', [refusal(0), {}], {}, [0, 250]],
    ['adds no more jitter than maxWaitMs leaves', [refusal(50), {}], tight, [0, 50_100]],
    ['doubles the jitter with each refusal', [...thrice, {}], {}, [0, 1250, 2750, 4750]],
    ['backs off by no more than maxBackoffMs', [{ status: 500 }], capped, [0, 1000, 2500, 4000]],
  ])('%s', async (_, script, options, expected) => {
    vi.mocked(Math.random).mockReturnValue(1)
    expect((await called(script, options)).times).toEqual(expected)
  })

  const final = [400, 401, 403, 404, 409, 410, 413, 422, 501]
  type Row = [status: number, headers: Record<string, string>]
  it.each<Row>([
    ...final.map((status): Row => [status, {}]),
    // It happens to use up a quota.
    [403, { RateLimit: '"a";r=0;t=30' }],
  ])('takes %i with %j as an answer', async (status, headers) => {
    expect(await called([{ status, headers }, {}])).toEqual({ status, times: [0] })
  })

  const github = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': epoch(3000) }
  it.each<Row>([
    ...[403, 409, 413].map((status): Row => [status, refusal(3).headers]),
    [403, github],
  ])('comes back after %i when told when by %j', async (status, headers) => {
    expect(await called([{ status, headers }, {}])).toEqual({ status: 200, times: [0, 3000] })
  })

  it('waits longer than a timer can', async () => {
    const { POSITIVE_INFINITY } = Number
    const patience = { maxWaitMs: POSITIVE_INFINITY, maxTotalWaitMs: POSITIVE_INFINITY }
    const { times } = await called([refusal(3_000_000), {}], patience)
    expect(times).toEqual([0, 3_000_000_000])
  })

  it('holds other calls for twenty days at most', async () => {
    const api = scriptedApi(refusal(900_000_000), {})
    const fetch = createFetch({ fetch: api.fetch, maxWaitMs: 500 })
    expect((await fetch(url)).status).toBe(429)
    await vi.advanceTimersByTimeAsync(1_728_000_000 - 1000)
    expect((await fetch(url)).headers.get('Retry-After')).toBe('1')
    await vi.advanceTimersByTimeAsync(1000)
    expect((await fetch(url)).status).toBe(200)
  })
})

describe('the answer', () => {
  it.each([
    ['the wait is longer than maxWaitMs', { maxWaitMs: 4999 }, 1, 'wait', 5000],
    ['it would take longer than maxTotalWaitMs', { maxTotalWaitMs: 12_000 }, 3, 'wait', 5000],
    ['the retries are used up', { retries: 2 }, 3, 'tries', undefined],
    ['there are no retries', { retries: 0 }, 1, 'tries', undefined],
  ])('is the last refusal, unread, when %s', async (_, options, count, reason, waitMs) => {
    const onGiveUp = vi.fn()
    const api = scriptedApi({ ...refusal(5), body: 'slowly' })
    const fetch = createFetch({ fetch: api.fetch, observers: { onGiveUp }, ...options })
    const response = await settled(fetch(url))
    expect([response.status, await response.text()]).toEqual([429, 'slowly'])
    expect(api.sent).toHaveLength(count)
    const event = { reason, waitMs, tries: count, response }
    expect(onGiveUp.mock.calls).toEqual([[expect.objectContaining(event)]])
  })

  it('is the error of the last try when the network fails', async () => {
    const api = scriptedApi(new TypeError('one'), new TypeError('two'))
    await expect(settled(createFetch({ fetch: api.fetch, retries: 1 })(url))).rejects.toThrow('two')
  })

  it('is our own refusal, and nothing is sent, while calls are blocked for too long', async () => {
    const api = scriptedApi({ ...refusal(3600), body: 'banned' }, {})
    const fetch = createFetch({ fetch: api.fetch })
    expect(await (await fetch(url)).text()).toBe('banned')
    await vi.advanceTimersByTimeAsync(600_000)

    const response = await fetch(url)
    expect(api.sent).toHaveLength(1)
    expect(response.status).toBe(429)
    expect(response.headers.get('Retry-After')).toBe('3000')
    const detail = expect.stringMatching(/^Not sent/)
    expect(await response.json()).toMatchObject({ status: 429, detail })

    await vi.advanceTimersByTimeAsync(3_000_000)
    expect((await fetch(url)).status).toBe(200)
  })

  it('is the error of the last try, not our own refusal, if calls are blocked then', async () => {
    const api = scriptedApi(new TypeError('no network'), refusal(3_600), {})
    vi.mocked(Math.random).mockReturnValue(0.9)
    const rejected = expect(createFetch({ fetch: api.fetch })(url)).rejects.toThrow('no network')
    await createFetch({ fetch: api.fetch, retries: 0 })(url)
    await settled(rejected)
    expect(api.sent).toHaveLength(2)
  })

  it('is the abort reason of a signal, even while calls are blocked', async () => {
    const fetch = createFetch({ fetch: scriptedApi(refusal(3_600)).fetch })
    await fetch(url)
    const call = fetch(url, { signal: AbortSignal.abort() })
    await expect(call).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
  })
})

describe('a clock with fractions', () => {
  it.each([0.1, 1 / 3, 12_345.678_9])('uses up a bound exactly: %f', async (startMs) => {
    const base = performance.now() + startMs
    vi.spyOn(performance, 'now').mockImplementation(() => base + (Date.now() - now) * 1.000_01)
    const api = scriptedApi({ ...refusal(1), status: 409 }, { status: 503 }, { status: 503 }, {})
    const fetch = createFetch({ fetch: api.fetch, maxTotalWaitMs: 1000 })
    // The first wait takes all that there is, and a little more; the backoffs are none.
    expect((await settled(fetch(url))).status).toBe(200)
  })

  it('lets those pass who wait for nothing', async () => {
    let passed = 0
    const real = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => {
      passed += 0.01
      return real() + passed
    })
    const api = scriptedApi({ headers: { RateLimit: '"a";r=5;t=10' } })
    const fetch = createFetch({ fetch: api.fetch, pace: true, maxTotalWaitMs: 0 })
    const responses = await settled(Promise.all([1, 2, 3].map(() => fetch(url))))
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  })
})
