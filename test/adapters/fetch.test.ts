import { memoryStore } from '@sluice/core'
import { ip, rateLimit } from '@sluice/fetch'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { storeThrough } from '../support/store-through.ts'
import { until } from '../support/until.ts'
import { counted, inFlight } from './counted.ts'

const one = { limit: 1, window: '1m' } as const
const info = { remoteAddress: '203.0.113.9' }
const hello = () => new Response('hello')

const get = (init: RequestInit & { path?: string } = {}): Request =>
  new Request(`http://a.example${init.path ?? '/'}`, init)

/** A limiter of requests in flight, and how many hold leases. */
function holding() {
  const { options, used } = counted(inFlight)
  return { limit: rateLimit(options), used }
}

/** A body in two parts, the second of which comes when it is asked for. */
function parts(...texts: string[]): ReadableStream {
  return new ReadableStream({
    pull(controller) {
      const text = texts.shift()
      if (text === undefined) controller.close()
      else controller.enqueue(new TextEncoder().encode(text))
    },
  })
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe('a handler of fetch', () => {
  it('gets the request, its info and the decision', async () => {
    const handler = vi.fn(hello)
    const request = get()
    await rateLimit(one)(handler)(request, info)

    const decision = expect.objectContaining({ allowed: true })
    expect(handler).toHaveBeenCalledExactlyOnceWith(request, info, decision)
    await rateLimit({ ...one, skip: () => true })(handler)(get(), info)
    expect(handler).toHaveBeenLastCalledWith(expect.anything(), info, undefined)
  })

  it('must return a response', async () => {
    const { limit, used } = holding()
    const nothing = limit((() => undefined) as never)
    await expect(nothing(get(), info)).rejects.toThrow(/must return a Response.*undefined/)
    expect(await used()).toBe(0)
  })

  it('has limits of its own by its route', async () => {
    const store = memoryStore()
    const everywhere = rateLimit({ limit: 5, window: '1m', store })
    const login = rateLimit({ ...one, store, route: 'POST /login' })
    const post = () => login(hello)(get({ method: 'POST' }), info)

    expect((await post()).headers.get('ratelimit')).toBe('"default-POST-login";r=0;t=60')
    expect((await post()).status).toBe(429)
    const other = await everywhere(hello)(get(), info)
    expect(other.headers.get('ratelimit')).toBe('"default";r=4;t=60')
  })

  it.each(['login', 'post /login', 'POST', ''])('refuses %j as a route', (route) => {
    expect(() => rateLimit({ ...one, route })).toThrow(/^route .*'POST \/login'/)
  })
})

describe('the address of a client', () => {
  const spoofed = get({ headers: { 'x-forwarded-for': '198.51.100.7', forwarded: 'for=1.1.1.1' } })

  it('is never read from a header by itself', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const seen: (string | undefined)[] = []
    const onDecision = ({ key }: { key?: string | undefined }) => void seen.push(key)
    await rateLimit({ ...one, observers: { onDecision } })(hello)(spoofed, info)

    expect(seen).toEqual(['@ip/203.0.113.9'])
    expect(warn.mock.calls.flat().join()).toMatch(/behind a proxy, set the option addressOf/)
  })

  it('that is missing is an error, not a shared key', async () => {
    const limited = rateLimit(one)(hello)

    const message = /pass it as remoteAddress, set the option addressOf/
    for (let i = 0; i < 3; i += 1) {
      const asked = limited(get(), {})
      await expect(asked).rejects.toMatchObject({ code: 'SLUICE_KEY_MISSING' })
      await expect(asked).rejects.toThrow(message)
    }
    const keyless = rateLimit({ ...one, key: () => undefined })(hello)
    await expect(keyless(get(), {})).rejects.toThrow(message)
  })

  it.each([
    ['deny', [429, 429]],
    ['skip', [200, 200]],
  ] as const)('that is missing goes by onMissingKey: %s', async (onMissingKey, statuses) => {
    const limited = rateLimit({ ...one, key: ip(), onMissingKey })(hello)
    const found = [await limited(get(), {}), await limited(get(), {})]

    expect(found.map(({ status }) => status)).toEqual(statuses)
  })
})

describe('a response of fetch', () => {
  const limited = (response: () => Response) => rateLimit({ limit: 9, window: '1m' })(response)

  it('that is sent again and again carries the fields of each request', async () => {
    const shared = new Response(null, { headers: { 'x-mine': '1' } })
    const handler = limited(() => shared)

    const first = await handler(get(), info)
    const second = await handler(get(), info)

    expect(first.headers.get('x-ratelimit-remaining')).toBe('8')
    expect(second.headers.get('x-ratelimit-remaining')).toBe('7')
    expect([...shared.headers]).toEqual([['x-mine', '1']])
  })

  it('with headers that are fixed gets the fields too', async () => {
    const redirect = await limited(() => Response.redirect('http://a.example/b', 303))(get(), info)
    expect([redirect.status, redirect.headers.get('location')]).toEqual([303, 'http://a.example/b'])
    const left = '"default";r=8;t=60'
    expect(redirect.headers.get('ratelimit')).toBe(left)

    const fetched = await fetch('data:text/plain,hi')
    const proxied = await limited(() => fetched)(get(), info)
    expect([await proxied.text(), proxied.headers.get('ratelimit')]).toEqual(['hi', left])
  })

  it('that is a network error stays one, and settles', async () => {
    const { limit, used } = holding()
    const response = await limit(() => Response.error())(get(), info)
    expect([response.type, response.status]).toEqual(['error', 0])
    expect(await used()).toBe(0)
  })

  it('keeps each cookie, its type, its status text and its body', async () => {
    const headers = new Headers([
      ...(['a=1', 'b=2'].map((cookie) => ['set-cookie', cookie]) as [string, string][]),
      ['content-type', 'text/event-stream'],
    ])
    const made = () => new Response(parts('a', 'b'), { status: 201, statusText: 'Made', headers })
    const response = await limited(made)(get(), info)

    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect([response.status, response.statusText]).toEqual([201, 'Made'])
    expect(await response.text()).toBe('ab')
  })

  it("of a chain has all limiters' headers, even if one in between rebuilds it", async () => {
    const outer = rateLimit({ name: 'outer', limit: 9, window: '1m', headers: ['draft-11'] })
    const inner = rateLimit({ name: 'inner', limit: 5, window: '1m', headers: ['draft-11'] })
    const policies = '"outer";q=9;w=60, "inner";q=5;w=60'
    const anew = outer(async (request) => {
      await inner(hello)(request, info)
      return new Response('anew')
    })
    expect((await anew(get(), info)).headers.get('ratelimit-policy')).toBe(policies)
  })
})

describe('what a request of fetch holds', () => {
  it('ends with the body of its response, and not before', async () => {
    const { limit, used } = holding()
    const response = await limit(() => new Response(parts('a', 'b')))(get(), info)
    const reader = response.body?.getReader()

    expect(await used()).toBe(1)
    await reader?.read()
    expect(await used()).toBe(1)
    while (!(await reader?.read())?.done);
    expect(await used()).toBe(0)
  })

  it.each([
    ['is cancelled', async (response: Response) => response.body?.cancel('gone')],
    ['fails', async (response: Response) => void (await response.text().catch(() => undefined))],
  ])('ends when the body %s', async (how, end) => {
    const cancelled = vi.fn()
    const pull = () => {
      if (how === 'fails') throw new Error('broken')
    }
    const { limit, used } = holding()
    const body = () => new ReadableStream({ pull, cancel: cancelled }, { highWaterMark: 0 })
    const response = await limit(() => new Response(body()))(get(), info)
    expect(await used()).toBe(1)
    await end(response)

    expect(await used()).toBe(0)
    expect(cancelled.mock.calls).toEqual(how === 'fails' ? [] : [['gone']])
  })

  it('is kept alive by waitUntil until the store is done', async () => {
    let release = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    const store = storeThrough(memoryStore(), (op) => (op === 'release' ? released : undefined))
    const limit = rateLimit({ ...inFlight, store, key: () => 'ada' })
    const work: Promise<unknown>[] = []
    const waitUntil = (promise: Promise<unknown>) => void work.push(promise)
    const response = await limit(hello)(get(), { ...info, waitUntil })
    expect(work).toHaveLength(1)
    let isDone = false
    void work[0]?.then(() => (isDone = true))
    await response.text()
    await new Promise((resolve) => setImmediate(resolve))
    expect(isDone).toBe(false)
    release()

    await until('the work is done', () => isDone)
    await rateLimit(one)(hello)(get(), { ...info, waitUntil })
    expect(work).toHaveLength(1)
  })

  it('is settled if the client of a delayed request disconnects', async () => {
    const queue = { algorithm: 'leaky-bucket', limit: 1, window: '1h', queue: 5 } as const
    const limit = rateLimit({ ...queue, name: 'q', key: () => 'ada' })
    const handler = vi.fn(hello)
    await limit(handler)(get(), info)
    const client = new AbortController()
    const held = limit(handler)(get({ signal: client.signal }), info)
    setImmediate(() => client.abort())

    expect((await held).status).toBe(499)
    expect(handler).toHaveBeenCalledTimes(1)
  })
})

describe('decide()', () => {
  it('leaves the response to the caller, and charges units added later at once', async () => {
    const { decide } = rateLimit({ ...one, limit: 3 })
    const first = await decide(get(), info)
    expect([first.answer, first.decision?.allowed]).toEqual([undefined, true])
    const sent = first.finish(new Response('mine'))
    expect(await sent.text()).toBe('mine')
    expect(sent.headers.get('ratelimit')).toBe('"default";r=2;t=60')

    first.decision?.charge(2)
    await new Promise((resolve) => setImmediate(resolve))
    const second = await decide(get(), info)
    expect([second.answer?.status, second.decision?.allowed]).toEqual([429, false])
    expect(second.answer?.headers.get('retry-after')).toBe('60')
  })

  it('settles holds when the caller reports the end of the request', async () => {
    const { limit, used } = holding()
    const failed = await limit.decide(get(), info)
    expect(await used()).toBe(1)
    failed.fail()
    failed.fail()
    await until('the lease is over', async () => (await used()) === 0)

    const finished = await limit.decide(get(), info)
    finished.decision?.charge(1)
    await finished.finish(new Response('mine')).text()
    expect(await used()).toBe(0)
  })
})

describe('the options of rateLimit', () => {
  it.each([undefined, null, 5, []])('must be an object, and not %j', (options) => {
    expect(() => rateLimit(options as never)).toThrow(/^rateLimit .*a plain object of options/)
  })

  it('name unknown options, and options that need a router', () => {
    expect(() => rateLimit({ ...one, adressOf: () => '' } as never)).toThrow(/addressOf/)
    expect(() => rateLimit({ ...one, addressOf: 'x-real-ip' as never })).toThrow(/^addressOf /)
    expect(() => rateLimit({ routes: { '/a': one } })).toThrow(/^routes needs the option router/)
  })

  it('warn once if a runtime with many isolates counts in memory', () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    vi.stubGlobal('EdgeRuntime', 'edge-runtime')
    try {
      rateLimit({ ...one, store: memoryStore() })
      expect(warn).not.toHaveBeenCalled()
      rateLimit(one)
      rateLimit(one)
    } finally {
      vi.unstubAllGlobals()
    }

    expect(warn.mock.calls).toEqual([[expect.stringContaining('each counts for itself')]])
  })
})
