import { createFetch } from '@sluice/client'
import { describe, expect, it, vi } from 'vitest'
import { fakeTime, refusal, scriptedApi, settled, url } from './scripted-api.ts'

fakeTime()

async function sentWith(init: RequestInit, options = {}): Promise<number> {
  const api = scriptedApi(refusal(1), {})
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

  it.each([
    ['POST', '"a"', 2],
    ['PATCH', '"a"', 2],
    ['POST', '', 1],
    ['POST', ' ', 1],
    ['POST', '""', 1],
  ])('%s with the Idempotency-Key %j is sent so often: %i', async (method, key, times) => {
    expect(await sentWith({ method, headers: { 'idempotency-key': key } })).toBe(times)
  })

  it('POST is where the caller says that it may be', async () => {
    expect(await sentWith({ method: 'POST' }, { methods: ['post'] })).toBe(2)
    expect(await sentWith({}, { methods: ['post'] })).toBe(1)
  })

  it('is reported as unsafe', async () => {
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
    const api = scriptedApi(refusal(1), {})
    await settled(createFetch({ fetch: api.fetch })(url, { method: 'PUT', body: body() ?? null }))
    expect(api.sent.map((sent) => sent.body)).toEqual(['a=1', 'a=1'])
  })

  it('of a form is sent again', async () => {
    const body = new FormData()
    body.set('a', '1')
    expect(await sentWith({ method: 'PUT', body })).toBe(2)
  })

  it('of a Request is sent again, and the Request is used up as with fetch', async () => {
    const api = scriptedApi(refusal(1), refusal(1), {})
    const request = new Request(url, { method: 'PUT', body: 'a=1' })
    await settled(createFetch({ fetch: api.fetch, retries: 2 })(request))
    expect(api.sent.map(({ body }) => body)).toEqual(['a=1', 'a=1', 'a=1'])
    expect(request.bodyUsed).toBe(true)
  })

  it('that is a stream is not', async () => {
    const body = new Blob(['a=1']).stream()
    expect(await sentWith({ method: 'PUT', body, duplex: 'half' })).toBe(1)
  })

  it('that is invalid is an immediate error', async () => {
    const call = createFetch({ fetch: scriptedApi({}).fetch })(url, { method: 'GET', body: 'a' })
    await expect(call).rejects.toThrow(TypeError)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('what is no request', () => {
  it.each(['/items', 'not a url', ''])('is rejected immediately: %j', async (input) => {
    await expect(createFetch()(input)).rejects.toThrow(TypeError)
  })
})

describe('an AbortSignal', () => {
  it('ends the call of its Request, and leaves no timer', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.9)
    const controller = new AbortController()
    const api = scriptedApi(refusal(1))
    const request = new Request(url, { signal: controller.signal })
    const rejected = expect(createFetch({ fetch: api.fetch })(request)).rejects.toThrow('enough')
    await vi.advanceTimersByTimeAsync(400)
    expect(vi.getTimerCount()).toBe(1)
    controller.abort(new Error('enough'))
    await rejected
    expect(vi.getTimerCount()).toBe(0)
    expect(api.sent).toHaveLength(1)
  })
})
