import { createFetch, StillPendingError, type WaitForOptions, waitFor } from '@sluice/client'
import { describe, expect, it, vi } from 'vitest'
import {
  fakeTime,
  refusal,
  type ScriptedAnswer,
  scriptedApi,
  settled,
  silence,
} from './scripted-api.ts'

fakeTime({ random: 0 })

const monitor = 'https://api.example.com/jobs/123'
const json = { 'Content-Type': 'application/json' }
const pending: ScriptedAnswer = {
  headers: { ...json, 'Retry-After': '2' },
  body: '{"id":"123","status":"running"}',
}
const done: ScriptedAnswer = { headers: json, body: '{"total":7}' }

/** A 202 as a server at `monitor`'s origin would have sent it. */
function accepted(headers: Record<string, string>, body: string | ReadableStream = ''): Response {
  const response = new Response(body, { status: 202, headers })
  Object.defineProperty(response, 'url', { value: 'https://api.example.com/jobs' })
  return response
}

/** Waits for the job of a 202, whose monitor `fetch` polls. */
function waited(fetch: typeof globalThis.fetch, options: WaitForOptions = {}) {
  return settled(waitFor(accepted({ Location: monitor }), { fetch, ...options }))
}

/** Waits for the job of a 202 with the headers `told`, whose monitor answers by a script. */
async function polled(
  script: readonly ScriptedAnswer[],
  { told = {}, ...options }: WaitForOptions & { told?: Readonly<Record<string, string>> } = {},
) {
  const api = scriptedApi(...script)
  const job = accepted({ Location: monitor, ...told })
  const result = await settled(waitFor(job, { fetch: api.fetch, ...options }))
  return { result, times: api.times(), urls: api.sent.map(({ url }) => url) }
}

async function expectPendingAt(ms: number, where: string | undefined, waiting: Promise<unknown>) {
  const startMs = performance.now()
  await expect(waiting).rejects.toMatchObject({ name: 'StillPendingError', monitor: where })
  expect(performance.now() - startMs).toBe(ms)
  expect(vi.getTimerCount()).toBe(0)
}

describe('waitFor', () => {
  it('polls the monitor as instructed, and returns the result', async () => {
    const script = [pending, { ...pending, headers: { 'Retry-After': '5' } }, done]
    const told = { Location: '/jobs/123', 'Retry-After': '3' }
    const { result, times, urls } = await polled(script, { told })
    expect(await result.json()).toEqual({ total: 7 })
    expect(times).toEqual([3000, 5000, 10_000])
    expect(urls).toEqual([monitor, monitor, monitor])
  })

  it.each([
    ['a text', monitor, {}],
    ['a URL', new URL(monitor), {}],
    ['a reference', '/jobs/123', { baseUrl: 'https://api.example.com' }],
  ])('takes the URL of a monitor for a job that it names: %s', async (_what, url, options) => {
    const api = scriptedApi(pending, done)
    const result = await settled(waitFor(url, { fetch: api.fetch, ...options }))
    expect(await result.json()).toEqual({ total: 7 })
    expect(api.times()).toEqual([200, 2200])
    expect(api.sent.map(({ url: sent }) => sent)).toEqual([monitor, monitor])
  })

  it.each([
    ['/jobs/123', "'/jobs/123'"],
    ['ftp://example.com', "'ftp://example.com'"],
    ['', "''"],
    [undefined, 'undefined'],
    [null, 'null'],
    [7, '7'],
    [{ id: '123' }, 'an object'],
    [Promise.resolve(new Response()), 'a promise'],
  ])('takes nothing else: %s', async (wrong, shown) => {
    const message = `waitFor takes the Response that fetch resolves with, or the URL of a monitor (http or https), but got ${shown}`
    await expect(waitFor(wrong as string)).rejects.toThrow(message)
  })

  const body = '{"monitor":"./jobs/123"}'
  const besides = (Location: string) => ({ ...json, Location })
  const noUrls = '{"monitor":7,"status_url":"/jobs/123","location":"Berlin"}'

  it.each([
    ['Location', { Location: '/jobs/123' }, ''],
    ['an absolute Location', { Location: monitor }, ''],
    ['Operation-Location', { 'Operation-Location': '/jobs/123' }, ''],
    ['Azure-AsyncOperation', { 'Azure-AsyncOperation': monitor }, ''],
    ['the body', json, '{"id":"123","status":"pending","monitor":"/jobs/123"}'],
    ['statusUrl in the body', json, '{"statusUrl":"/jobs/123"}'],
    ['the body, where Location is no URL', besides('http://'), body],
    ['the body, where Location is none of the web', besides('data:,done'), body],
    ['the body, where Location leads from https to http', besides('http://api.example.com/'), body],
    ['the body, whose location is a place', json, noUrls],
  ])('finds the monitor in %s', async (_, headers, body) => {
    const api = scriptedApi(done)
    const job = accepted(headers, body)
    await settled(waitFor(job, { fetch: api.fetch }))
    expect(api.sent).toMatchObject([{ url: monitor, method: 'GET' }])
    expect(job.bodyUsed).toBe(false)
  })

  it.each([200, 201, 204, 400, 429, 503])('has nothing to wait for with a %i', async (status) => {
    const response = new Response(null, { status })
    expect(await waitFor(response)).toBe(response)
  })

  it.each([
    ['the problem of a job that failed', 422],
    ['an error of the server', 500],
    ['a job that is not known', 404],
    ['a job that has expired', 410],
  ])('answers %s', async (_, status) => {
    const { result } = await polled([pending, { status, body: 'why' }])
    expect([result.status, await result.text()]).toEqual([status, 'why'])
  })

  it('follows a redirect to the result, which may have its own Retry-After', async () => {
    const response = new Response('result', { headers: { 'Retry-After': '9' } })
    Object.defineProperty(response, 'redirected', { value: true })
    expect(await waited(async () => response)).toBe(response)
  })

  it('polls through a client that waits as instructed', async () => {
    const api = scriptedApi(refusal(4), new TypeError('fetch failed'), done)
    const fetch = createFetch({ fetch: api.fetch })
    await settled(waitFor(accepted({ Location: monitor, 'Retry-After': '1' }), { fetch }))
    expect(api.times()).toEqual([1000, 5000, 5050])
  })

  it('calls its fetch as a function, as pages need it', async () => {
    const fetch = vi.fn(async () => new Response())
    await waited(fetch)
    expect(fetch.mock.contexts).toEqual([undefined])
  })

  it('follows a 202 that names another monitor', async () => {
    const other = 'https://api.example.com/jobs/124'
    const { urls } = await polled([{ status: 202, headers: { Location: other } }, done])
    expect(urls).toEqual([monitor, other])
  })

  describe('and other origins', () => {
    const headers = { Authorization: 'Bearer a' }
    const foreign = 'https://other.example.com/jobs/123'

    /** A `fetch` that notes where it was sent, and with which credentials. */
    function noting() {
      const seen: [string, string | null][] = []
      const fetch: typeof globalThis.fetch = async (input, init) => {
        seen.push([String(input), new Headers(init?.headers).get('Authorization')])
        return new Response()
      }
      return { fetch, seen }
    }

    it('sends its headers to the origin of the answer', async () => {
      const { fetch, seen } = noting()
      const entries = Object.entries(headers).values()
      await waited(fetch, { headers: entries as unknown as [string, string][] })
      expect(seen).toEqual([[monitor, 'Bearer a']])
    })

    it('refuses a monitor of another origin, unless it is told otherwise', async () => {
      const { fetch, seen } = noting()
      const waiting = waitFor(accepted({ Location: foreign }), { fetch, headers })
      await expect(waiting).rejects.toThrow(
        /does not have the same origin as https:\/\/api.*sameOrigin/,
      )
      expect(seen).toEqual([])
      await settled(waitFor(accepted({ Location: foreign }), { fetch, headers, sameOrigin: false }))
      expect(seen).toEqual([[foreign, null]])
    })

    it('refuses a redirect there by a monitor', async () => {
      const api = scriptedApi({ status: 202, headers: { Location: foreign } })
      await expect(waited(api.fetch)).rejects.toThrow('sameOrigin')
      expect(api.sent).toHaveLength(1)
    })

    it('does not know the origin of a rebuilt response', async () => {
      const { fetch, seen } = noting()
      const anew = (Location: string) => new Response('', { status: 202, headers: { Location } })
      const waiting = waitFor(anew(monitor), { fetch, headers })
      await expect(waiting).rejects.toThrow(/which has no URL.*baseUrl/)
      await settled(waitFor(anew(monitor), { fetch, headers, sameOrigin: false }))
      await expect(waitFor(anew('/jobs/123'), { fetch })).rejects.toThrow('has no monitor URL')
      const baseUrl = new URL('https://api.example.com/v1/')
      await settled(waitFor(anew('../jobs/123'), { fetch, headers, baseUrl }))
      expect(seen).toEqual([
        [monitor, null],
        [monitor, 'Bearer a'],
      ])
    })
  })

  it("gives up with an error that has the monitor's URL", async () => {
    const api = scriptedApi(pending)
    const job = accepted({ Location: monitor, 'Retry-After': '2' })
    const waiting = settled(waitFor(job, { fetch: api.fetch, maxWaitMs: 7000 }))
    const error: unknown = await waiting.catch((reason) => reason)
    expect(error).toBeInstanceOf(StillPendingError)
    expect(error).toMatchObject({ monitor, response: { status: 200 } })
    expect(api.times()).toEqual([2000, 4000, 6000])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('takes the word of isPending, and shows what is pending', async () => {
    const busy = { headers: json, body: '{"state":"busy"}' }
    const shown: unknown[] = []
    const { result } = await polled([busy, done], {
      isPending: async (response) => (await response.clone().text()).includes('busy'),
      onPending: (response) => shown.push(response.status),
    })
    expect(await result.json()).toEqual({ total: 7 })
    expect(shown).toEqual([200])
  })

  it('is not blocked by an unanswered poll', async () => {
    const fetch = vi.fn<typeof globalThis.fetch>(() => new Promise(() => undefined))
    await expectPendingAt(7000, monitor, waited(fetch, { maxWaitMs: 7000 }))
    expect(fetch.mock.calls.map(([, init]) => init?.signal?.aborted)).toEqual([true])
  })

  it('is not blocked by the body of a 202 that never arrives', async () => {
    const waiting = settled(waitFor(accepted(json, silence()), { maxWaitMs: 7000 }))
    await expectPendingAt(7000, undefined, waiting)
  })

  it('looks for another monitor no longer than a second', async () => {
    const timesMs: number[] = []
    const startMs = performance.now()
    const fetch = async () => {
      timesMs.push(performance.now() - startMs)
      const isLast = timesMs.length === 3
      return isLast ? new Response() : new Response(silence(), { status: 202, headers: json })
    }
    await waited(fetch)
    expect(timesMs).toEqual([1000, 3500, 6750])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('treats a missing document as the result after a second', async () => {
    const response = new Response(silence(), { headers: json })
    const startMs = performance.now()
    const result = await waited(async () => response)
    expect(result).toBe(response)
    expect(result.bodyUsed).toBe(false)
    expect(performance.now() - startMs).toBe(2000)
  })

  const again = { headers: { 'Retry-After': '0' } }
  const past = { headers: { 'Retry-After': 'Sun, 06 Nov 1994 08:49:37 GMT' } }
  const soon = { headers: { 'Retry-After': '1' } }
  const silent = { status: 202 }
  const statusIs = (status: string) => ({ headers: json, body: JSON.stringify({ status }) })

  /** Not at once, though the server says so. */
  const slower = [200, 500, 950, 1950, 2150]

  it.each<[what: string, told: ScriptedAnswer, answers: ScriptedAnswer[], times: number[]]>([
    ['a poll that came too early', soon, [refusal(90)], [1000, 91_000]],
    ['a poll of a busy server', soon, [{ ...refusal(90), status: 503 }], [1000, 91_000]],
    ['answers that tell no wait', {}, [silent, silent, silent], [1000, 2500, 4750, 8125]],
    ['a wait of 0', again, [again, again, soon, again], slower],
    ['a date that is over', past, [past, past, soon, past], slower],
    ['a body that says pending', {}, [statusIs('pending')], [1000, 2500]],
    ['a 429 that says nothing', {}, [{ status: 429 }], [1000, 2500]],
  ])('asks again after %s', async (_, { headers = {} }, answers, expected) => {
    const { result, times } = await polled([...answers, done], { told: headers })
    expect(await result.json()).toEqual({ total: 7 })
    expect(times).toEqual(expected)
  })

  it('polls less and less often if told 0 repeatedly, or with intervalMs 0', async () => {
    for (const headers of [{ 'Retry-After': '0' }, undefined]) {
      const api = scriptedApi({ status: 202, ...(headers && { headers }) })
      const waiting = waited(api.fetch, { intervalMs: 0, maxWaitMs: 600_000 })
      await expect(waiting).rejects.toBeInstanceOf(StillPendingError)
      expect(api.sent.length).toBeLessThan(60)
    }
  })

  it('adds jitter to each wait, as far as maxWaitMs leaves room', async () => {
    vi.mocked(Math.random).mockReturnValue(1)
    const script = [{ headers: { 'Retry-After': '0' } }, pending, done]
    const { times } = await polled(script, { told: { 'Retry-After': '5' }, maxWaitMs: 7850 })
    expect(times).toEqual([5500, 5800, 7825])
  })

  it('treats a finished status as the result, even a long one', async () => {
    const long = JSON.stringify({ status: 'running', filling: 'x'.repeat(70_000) })
    for (const body of ['{"status":"done"}', '{"status":', '["pending"]', long]) {
      const { result } = await polled([{ headers: json, body }, done])
      expect(await result.text()).toBe(body)
    }
  })

  it.each([
    ['with a slash at the end', `${monitor}/`, 2],
    ['of the other scheme', monitor.replace('https', 'http'), 2],
    ['elsewhere', 'https://api.example.com/machines/7', 1],
  ])('knows a redirect to itself from one to the result: %s', async (_, url, polls) => {
    const first = new Response('{"status":"running"}', { headers: json })
    Object.defineProperties(first, { redirected: { value: true }, url: { value: url } })
    const fetch = vi.fn(async () => new Response('{}')).mockResolvedValueOnce(first)
    await waited(fetch)
    expect(fetch).toHaveBeenCalledTimes(polls)
  })

  it('gives up the body of each answer that is not the last, and leaves the 202 alone', async () => {
    const given: string[] = []
    const body = (name: string) => new ReadableStream({ cancel: () => void given.push(name) })
    const headers = { 'Retry-After': '9' }
    const answers = ['first', 'second'].map((name) => new Response(body(name), { headers }))
    const controller = new AbortController()
    const waiting = waitFor(accepted({ Location: monitor }, body('202')), {
      fetch: async () => answers.shift() ?? new Response(),
      signal: controller.signal,
    })
    const rejected = expect(waiting).rejects.toThrow('enough')
    await vi.advanceTimersByTimeAsync(1500)
    expect(given).toEqual(['first'])
    await vi.advanceTimersByTimeAsync(9000)
    expect(given).toEqual(['first', 'second'])
    controller.abort(new Error('enough'))
    await rejected
    expect(given).toEqual(['first', 'second'])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('gives it up when an observer throws', async () => {
    const cancel = vi.fn()
    const answer = new Response(new ReadableStream({ cancel }), { status: 202 })
    const onPending = (): void => {
      throw new Error('observed')
    }
    await expect(waited(async () => answer, { onPending })).rejects.toThrow('observed')
    expect(cancel).toHaveBeenCalledTimes(1)
  })

  it('leaves the result to the signal of the caller, and to no deadline', async () => {
    const controller = new AbortController()
    const fetch = vi.fn<typeof globalThis.fetch>(async () => new Response())
    const aborted = () => fetch.mock.calls.map(([, init]) => init?.signal?.aborted)
    await waited(fetch, { signal: controller.signal, maxWaitMs: 5000 })
    await vi.advanceTimersByTimeAsync(10_000)
    expect(aborted()).toEqual([false])
    controller.abort()
    expect(aborted()).toEqual([true])
  })

  it('takes a 500 for the end of a job, and asks a client by itself that does so', async () => {
    const api = scriptedApi({ status: 500, body: 'failed' })
    vi.stubGlobal('fetch', api.fetch)
    const result = await settled(waitFor(accepted({ Location: monitor })))
    vi.unstubAllGlobals()
    expect([result.status, api.sent.length]).toEqual([500, 1])
  })

  it.each([
    ['nothing', {}, ''],
    ['no URL', { Location: 'http://' }, ''],
    ['a body that is no JSON', json, '<html>'],
  ])('says so when the 202 names %s', async (_, headers, body) => {
    await expect(waitFor(accepted(headers, body))).rejects.toThrow(/has no monitor URL/)
  })
})
