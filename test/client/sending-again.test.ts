import { createFetch } from '@sluice/client'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fakeTime, scriptedApi, settled, url } from './scripted-api.ts'

beforeEach(fakeTime)
afterEach(() => vi.useRealTimers())

const refusal = { status: 429, headers: { 'Retry-After': '1' } }

async function sentWith(init: RequestInit, options = {}): Promise<number> {
  const api = scriptedApi(refusal, {})
  await settled(createFetch({ fetch: api.fetch, ...options })(url, init))
  return api.sent.length
}

describe('what is sent again', () => {
  it.each(['GET', 'get', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])('%s is', async (method) => {
    expect(await sentWith({ method })).toBe(2)
  })

  it.each(['POST', 'PATCH', 'ANYTHING'])('%s is not', async (method) => {
    expect(await sentWith({ method })).toBe(1)
  })

  it.each(['POST', 'PATCH'])('%s with an Idempotency-Key is', async (method) => {
    expect(await sentWith({ method, headers: { 'idempotency-key': '"a"' } })).toBe(2)
  })

  it.each(['', ' ', '""'])('POST with an Idempotency-Key that is empty is not: %j', async (key) => {
    expect(await sentWith({ method: 'POST', headers: { 'Idempotency-Key': key } })).toBe(1)
  })

  it('POST is where the caller says that it may be', async () => {
    expect(await sentWith({ method: 'POST' }, { methods: ['post'] })).toBe(2)
    expect(await sentWith({}, { methods: ['post'] })).toBe(1)
  })

  it('is said to be unsafe where it is', async () => {
    const onGiveUp = vi.fn()
    await sentWith({ method: 'POST' }, { observers: { onGiveUp } })
    expect(onGiveUp).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ reason: 'unsafe' }))
  })

  it('a network that fails is not tried again with a POST', async () => {
    const api = scriptedApi(new TypeError('fetch failed'))
    const call = createFetch({ fetch: api.fetch })(url, { method: 'POST' })
    await expect(settled(call)).rejects.toThrow('fetch failed')
    expect(api.sent).toHaveLength(1)
  })
})

describe('a body', () => {
  const bodies: [string, () => RequestInit['body']][] = [
    ['text', () => 'a=1'],
    ['bytes', () => new TextEncoder().encode('a=1')],
    ['URLSearchParams', () => new URLSearchParams({ a: '1' })],
    ['a Blob', () => new Blob(['a=1'])],
  ]

  it.each(bodies)('is sent again: %s', async (_, body) => {
    const api = scriptedApi(refusal, {})
    await settled(createFetch({ fetch: api.fetch })(url, { method: 'PUT', body: body() ?? null }))
    expect(api.sent.map((sent) => sent.body)).toEqual(['a=1', 'a=1'])
  })

  it('of a form is sent again', async () => {
    const body = new FormData()
    body.set('a', '1')
    const api = scriptedApi(refusal, {})
    await settled(createFetch({ fetch: api.fetch })(url, { method: 'PUT', body }))
    expect(api.sent).toHaveLength(2)
  })

  it('of a Request is sent again, and the Request is used up as with fetch', async () => {
    const api = scriptedApi(refusal, refusal, {})
    const request = new Request(url, { method: 'PUT', body: 'a=1' })
    await settled(createFetch({ fetch: api.fetch, retries: 2 })(request))
    expect(api.sent.map(({ body }) => body)).toEqual(['a=1', 'a=1', 'a=1'])
    expect(request.bodyUsed).toBe(true)
  })

  it('that is a stream is not', async () => {
    const body = new Blob(['a=1']).stream()
    expect(await sentWith({ method: 'PUT', body, duplex: 'half' })).toBe(1)
  })

  it('that is no legal one is an error at once', async () => {
    const call = createFetch({ fetch: scriptedApi({}).fetch })(url, { method: 'GET', body: 'a' })
    await expect(call).rejects.toThrow(TypeError)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('what is no request', () => {
  it.each(['/items', 'not a url', ''])('is rejected at once: %j', async (input) => {
    await expect(createFetch()(input)).rejects.toThrow(TypeError)
  })
})

describe('an AbortSignal', () => {
  it.each([
    ['while the call waits as told', refusal],
    ['while it backs off', { status: 503 }],
  ])('ends the call %s, and leaves no timer', async (_, answer) => {
    vi.spyOn(Math, 'random').mockReturnValue(0.9)
    const controller = new AbortController()
    const api = scriptedApi(answer)
    const call = createFetch({ fetch: api.fetch })(url, { signal: controller.signal })
    const rejected = expect(call).rejects.toThrow('enough')
    await vi.advanceTimersByTimeAsync(400)
    expect(vi.getTimerCount()).toBe(1)
    controller.abort(new Error('enough'))
    await rejected
    expect(vi.getTimerCount()).toBe(0)
    expect(api.sent).toHaveLength(1)
  })

  it('of a Request ends the call as well', async () => {
    const controller = new AbortController()
    const request = new Request(url, { signal: controller.signal })
    const call = createFetch({ fetch: scriptedApi(refusal).fetch })(request)
    const rejected = expect(call).rejects.toThrow('enough')
    await vi.advanceTimersByTimeAsync(400)
    controller.abort(new Error('enough'))
    await rejected
    expect(vi.getTimerCount()).toBe(0)
  })

  it('that has ended sends nothing', async () => {
    const api = scriptedApi({})
    const call = createFetch({ fetch: api.fetch })(url, { signal: AbortSignal.abort() })
    await expect(call).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
    expect(api.sent).toEqual([])
  })

  it('ends while it is held, without a request', async () => {
    const api = scriptedApi({ status: 429, headers: { 'Retry-After': '30' } })
    const fetch = createFetch({ fetch: api.fetch, retries: 0 })
    await fetch(url)
    const call = fetch(url, { signal: AbortSignal.timeout(100) })
    const rejected = expect(call).rejects.toThrow(expect.objectContaining({ name: 'TimeoutError' }))
    vi.useRealTimers()
    await rejected
    expect(api.sent).toHaveLength(1)
  })
})

describe('an observer that throws', () => {
  it.each(['onWait', 'onGiveUp'])('is a warning, and changes no call: %s', async (name) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const observer = vi.fn(() => {
      throw new Error('observed')
    })
    const answers = [
      new Response('', { status: 429, headers: { 'Retry-After': '1' } }),
      new Response('', { status: name === 'onWait' ? 200 : 429 }),
    ]
    const send = async () => answers.shift() ?? new Response('')
    const retries = name === 'onWait' ? 1 : 0
    const call = createFetch({ fetch: send, retries, observers: { [name]: observer } })(url)
    expect((await settled(call)).status).toBe(name === 'onWait' ? 200 : 429)
    expect(observer).toHaveBeenCalledOnce()
    expect(warn.mock.calls.flat().join()).toContain('observed')
  })
})
