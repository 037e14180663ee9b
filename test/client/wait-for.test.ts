import { createFetch, StillPendingError, waitFor } from '@sluice/client'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fakeTime, type ScriptedAnswer, scriptedApi, settled } from './scripted-api.ts'

beforeEach(() => {
  fakeTime()
  vi.spyOn(Math, 'random').mockReturnValue(0)
})

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const monitor = 'https://api.example.com/jobs/123'
const json = { 'Content-Type': 'application/json' }
const pending: ScriptedAnswer = {
  headers: { ...json, 'Retry-After': '2' },
  body: '{"id":"123","status":"running"}',
}
const done: ScriptedAnswer = { headers: json, body: '{"total":7}' }

/** A 202 as a server at `monitor`'s origin would have sent it. */
function accepted(headers: Record<string, string>, body = ''): Response {
  const response = new Response(body, { status: 202, headers })
  Object.defineProperty(response, 'url', { value: 'https://api.example.com/jobs' })
  return response
}

describe('waitFor', () => {
  it('polls the monitor as it is told, and answers the result', async () => {
    const api = scriptedApi(pending, { ...pending, headers: { 'Retry-After': '5' } }, done)
    const job = accepted({ Location: '/jobs/123', 'Retry-After': '3' })
    const result = await settled(waitFor(job, { fetch: api.fetch }))
    expect(await result.json()).toEqual({ total: 7 })
    expect(api.sent.map(({ atMs, url }) => [atMs, url])).toEqual([
      [3000, monitor],
      [5000, monitor],
      [10_000, monitor],
    ])
  })

  it.each([
    ['Location', { Location: '/jobs/123' }, ''],
    ['an absolute Location', { Location: monitor }, ''],
    ['Operation-Location', { 'Operation-Location': '/jobs/123' }, ''],
    ['Azure-AsyncOperation', { 'Azure-AsyncOperation': monitor }, ''],
    ['the body', json, '{"id":"123","status":"pending","monitor":"/jobs/123"}'],
    ['statusUrl in the body', json, '{"statusUrl":"/jobs/123"}'],
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
    const api = scriptedApi(pending, { status, body: 'why' })
    const result = await settled(waitFor(accepted({ Location: monitor }), { fetch: api.fetch }))
    expect([result.status, await result.text()]).toEqual([status, 'why'])
  })

  it('follows to the result, which may have a Retry-After of its own', async () => {
    const response = new Response('result', { headers: { 'Retry-After': '9' } })
    Object.defineProperty(response, 'redirected', { value: true })
    const fetch = async () => response
    expect(await settled(waitFor(accepted({ Location: monitor }), { fetch }))).toBe(response)
  })

  it('goes on when a poll comes too early, or the server is busy', async () => {
    const refused = { status: 429, headers: { 'Retry-After': '90' } }
    const api = scriptedApi(refused, { ...refused, status: 503 }, done)
    const job = accepted({ Location: monitor, 'Retry-After': '1' })
    await settled(waitFor(job, { fetch: api.fetch }))
    expect(api.times()).toEqual([1000, 91_000, 181_000])
  })

  it('asks through a client that waits as it is told', async () => {
    const api = scriptedApi(
      { status: 429, headers: { 'Retry-After': '4' } },
      new TypeError('fetch failed'),
      done,
    )
    const fetch = createFetch({ fetch: api.fetch })
    await settled(waitFor(accepted({ Location: monitor, 'Retry-After': '1' }), { fetch }))
    expect(api.times()).toEqual([1000, 5000, 5050])
  })

  it('asks less and less often where it is not told when', async () => {
    const silent = { status: 202 }
    const api = scriptedApi(silent, silent, silent, done)
    await settled(waitFor(accepted({ Location: monitor }), { fetch: api.fetch }))
    expect(api.times()).toEqual([1000, 2500, 4750, 8125])
  })

  it('follows a 202 that names another monitor', async () => {
    const moved = { status: 202, headers: { Location: 'https://api.example.com/jobs/124' } }
    const api = scriptedApi(moved, done)
    await settled(waitFor(accepted({ Location: monitor }), { fetch: api.fetch }))
    expect(api.sent.map(({ url }) => url)).toEqual([monitor, 'https://api.example.com/jobs/124'])
  })

  it('sends the headers to the origin of the answer alone', async () => {
    const seen: (string | null)[] = []
    const fetch: typeof globalThis.fetch = async (_input, init) => {
      seen.push(new Headers(init?.headers).get('Authorization'))
      return new Response()
    }
    const options = { fetch, headers: { Authorization: 'Bearer a' } }
    await settled(waitFor(accepted({ Location: monitor }), options))
    await settled(waitFor(accepted({ Location: 'https://evil.example.com/' }), options))
    expect(seen).toEqual(['Bearer a', null])
  })

  it('gives up with an error that says where to ask again', async () => {
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
    const api = scriptedApi(busy, done)
    const shown: unknown[] = []
    const result = await settled(
      waitFor(accepted({ Location: monitor }), {
        fetch: api.fetch,
        isPending: async (response) => (await response.clone().text()).includes('busy'),
        onPending: (response) => shown.push(response.status),
      }),
    )
    expect(await result.json()).toEqual({ total: 7 })
    expect(shown).toEqual([200])
  })

  it('ends with its signal, and leaves no timer', async () => {
    const controller = new AbortController()
    const job = accepted({ Location: monitor, 'Retry-After': '60' })
    const waiting = waitFor(job, { fetch: scriptedApi().fetch, signal: controller.signal })
    const rejected = expect(waiting).rejects.toThrow('enough')
    await vi.advanceTimersByTimeAsync(1000)
    controller.abort(new Error('enough'))
    await rejected
    expect(vi.getTimerCount()).toBe(0)
  })

  it.each([
    ['nothing', {}, ''],
    ['no URL', { Location: 'http://' }, ''],
    ['a body that is no JSON', json, '<html>'],
  ])('says so when the 202 names %s', async (_, headers, body) => {
    await expect(waitFor(accepted(headers, body))).rejects.toThrow(/names no monitor/)
  })
})
