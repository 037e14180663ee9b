import { Readable } from 'node:stream'
import { createFetch } from '@sluice/client'
import { describe, expect, it, vi } from 'vitest'
import { fakeTime, refusal, scriptedApi, settled, url } from './scripted-api.ts'

fakeTime()

describe('the arguments of fetch', () => {
  it.each<[string, () => Iterable<[string, string]>]>([
    ['an iterator', () => new Map([['X-Trace', 'a']]).entries()],
    ['a Map', () => new Map([['X-Trace', 'a']])],
    ['pairs', () => [['X-Trace', 'a']]],
    ['Headers', () => new Headers({ 'X-Trace': 'a' })],
  ])('keep their headers on each try, as %s', async (_, headers) => {
    const seen: (string | null)[] = []
    const fetch: typeof globalThis.fetch = async (input, init) => {
      seen.push(new Request(input, init).headers.get('X-Trace'))
      return seen.length === 1 ? new Response('', refusal(1)) : new Response()
    }
    await settled(createFetch({ fetch })(url, { headers: headers() as [string, string][] }))
    expect(seen).toEqual(['a', 'a'])
  })

  it('may have a Request as init', async () => {
    const api = scriptedApi(refusal(1), {})
    await settled(createFetch({ fetch: api.fetch })(url, new Request(url, { method: 'DELETE' })))
    expect(api.sent.map(({ method }) => method)).toEqual(['DELETE', 'DELETE'])
  })

  it('may be a Request that hides whether it has a body, as in Firefox', async () => {
    const request = new Request(url, { method: 'PUT', body: 'a=1' })
    Object.defineProperty(request, 'body', { value: undefined })
    const sent: string[] = []
    const fetch: typeof globalThis.fetch = async (input) => {
      sent.push(await (input as Request).text())
      return sent.length === 1 ? new Response('', refusal(1)) : new Response()
    }
    expect((await settled(createFetch({ fetch })(request))).status).toBe(200)
    expect(sent).toEqual(['a=1', 'a=1'])
  })

  it('that are a used Request are rejected at once, as fetch does', async () => {
    const request = new Request(url, { method: 'PUT', body: 'a=1' })
    await request.text()
    const onWait = vi.fn()
    const api = scriptedApi({})
    const call = createFetch({ fetch: api.fetch, observers: { onWait } })(request)
    await expect(call).rejects.toThrow(TypeError)
    expect(onWait).not.toHaveBeenCalled()
    expect(api.sent).toEqual([])
  })

  it('may be a used Request with a body of its own', async () => {
    const request = new Request(url, { method: 'PUT', body: 'a=1' })
    await request.text()
    const api = scriptedApi(refusal(1), {})
    const fetch: typeof globalThis.fetch = (_, init) => api.fetch(url, init)
    await settled(createFetch({ fetch })(request, { method: 'PUT', body: 'b=2' }))
    expect(api.sent.map(({ body }) => body)).toEqual(['b=2', 'b=2'])
  })

  it('end the call if the body is used elsewhere between tries', async () => {
    const request = new Request(url, { method: 'PUT', body: 'a=1' })
    const onWait = vi.fn(() => void request.text())
    const api = scriptedApi(refusal(1), {})
    const call = settled(createFetch({ fetch: api.fetch, observers: { onWait } })(request))
    await expect(call).rejects.toThrow(TypeError)
    expect(onWait).toHaveBeenCalledTimes(1)
    expect(api.sent).toHaveLength(1)
  })

  it('are sent once if the body is a Node stream', async () => {
    // As form-data is: neither a web stream nor iterable.
    const body = { pipe: () => undefined } as unknown as ReadableStream
    const sent: unknown[] = []
    const fetch: typeof globalThis.fetch = async (_, init) => {
      sent.push(init?.body)
      return new Response('', refusal(1))
    }
    await settled(createFetch({ fetch })(url, { method: 'PUT', body }))
    expect(sent).toEqual([body])
  })
})

describe('a fetch of another make', () => {
  it('may return Node streams, which are destroyed too', async () => {
    const bodies: Readable[] = []
    const fetch: typeof globalThis.fetch = async () => {
      const body = Readable.from(['slowly'])
      bodies.push(body)
      const response = new Response('', bodies.length === 1 ? refusal(1) : {})
      return Object.defineProperty(response, 'body', { value: body })
    }
    expect((await settled(createFetch({ fetch })(url))).status).toBe(200)
    expect(bodies.map(({ destroyed }) => destroyed)).toEqual([true, false])
  })

  it('may report a relative URL', async () => {
    const fetch: typeof globalThis.fetch = async () =>
      Object.defineProperty(new Response('ok'), 'url', { value: '/items' })
    expect(await (await createFetch({ fetch })(url)).text()).toBe('ok')
  })
})
