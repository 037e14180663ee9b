import { createFetch, type GiveUpEvent, type WaitEvent } from '@sluice/client'
import { describe, expect, it, vi } from 'vitest'
import { fakeTime, type ScriptedAnswer, scriptedApi, settled, silence } from './scripted-api.ts'

fakeTime({ random: 0 })

const origin = 'https://api.example.com'

/** Two policies, of which the first is spent; a document may say that it was the other one. */
const headers = {
  'Content-Type': 'application/problem+json',
  RateLimit: '"burst";r=0;t=1, "day";r=3;t=3600',
}
const told = { ...headers, 'Retry-After': '30' }

/** The length is that of the encoded body, and may be a lie: nothing must rest on it. */
const short = { ...told, 'Content-Length': '60' }
const naming = (...names: string[]): string => JSON.stringify({ 'violated-policies': names })

/** A `fetch` that gives these answers in turn, and notes when requests came. */
function answering(...answers: (() => Response)[]) {
  const timesMs: number[] = []
  const startMs = performance.now()
  const fetch: typeof globalThis.fetch = async () => {
    timesMs.push(performance.now() - startMs)
    return answers.shift()?.() ?? new Response()
  }
  return { fetch, timesMs }
}

/** A `fetch` that refuses the first request with a body of its own. */
function refusing(body: () => ReadableStream, headers: Record<string, string> = short) {
  return answering(() => new Response(body(), { status: 429, headers }))
}

describe('the document of a refusal', () => {
  it('that never arrives delays nothing: this call and all others wait as instructed immediately', async () => {
    const api = refusing(silence)
    const fetch = createFetch({ fetch: api.fetch })
    const first = fetch(`${origin}/items`)
    await vi.advanceTimersByTimeAsync(10)
    const responses = await settled(Promise.all([first, fetch(`${origin}/items`)]))
    expect(responses.map(({ status }) => status)).toEqual([200, 200])
    expect(api.timesMs).toHaveLength(3)
    expect(Math.min(...api.timesMs.slice(1))).toBe(30_000)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('that never arrives is awaited for a second, on the last response', async () => {
    const api = refusing(silence)
    const startMs = performance.now()
    const refused = await settled(createFetch({ fetch: api.fetch, retries: 0 })(`${origin}/items`))
    expect(refused.status).toBe(429)
    expect(performance.now() - startMs).toBe(1000)
    expect(refused.bodyUsed).toBe(false)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('ends with the signal of the call', async () => {
    const controller = new AbortController()
    const api = refusing(silence)
    const call = createFetch({ fetch: api.fetch })(`${origin}/items`, { signal: controller.signal })
    const rejected = expect(call).rejects.toThrow('enough')
    await vi.advanceTimersByTimeAsync(100)
    controller.abort(new Error('enough'))
    await rejected
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is read up to a maximum length, and ignored beyond', async () => {
    let pulled = 0
    const chunk = new TextEncoder().encode(' '.repeat(16_384))
    const endless = (): ReadableStream<Uint8Array> =>
      new ReadableStream({
        pull: (controller) => {
          pulled += chunk.length
          controller.enqueue(chunk)
        },
      })
    const api = refusing(endless)
    await settled(createFetch({ fetch: api.fetch })(`${origin}/items`))
    expect(api.timesMs).toEqual([0, 30_000])
    expect(pulled).toBeLessThan(200_000)
  })

  it('needs no Content-Length', async () => {
    const events: WaitEvent[] = []
    const api = refusing(() => new Blob([naming('day')]).stream(), told)
    const fetch = createFetch({
      fetch: api.fetch,
      observers: { onWait: (event) => events.push(event) },
    })
    await settled(fetch(`${origin}/items`))
    expect(events).toMatchObject([{ reason: 'server', waitMs: 30_000, policies: ['day'] }])
  })

  it('tells the wait by the reset of the policies that it lists, where there is no Retry-After', async () => {
    const api = scriptedApi({ status: 429, headers, body: naming('day') }, {})
    const patience = { maxWaitMs: 4_000_000, maxTotalWaitMs: 4_000_000 }
    await settled(createFetch({ fetch: api.fetch, ...patience })(`${origin}/items`))
    expect(api.times()).toEqual([0, 3_600_000])
  })

  describe('that lists a policy with all its units left, without Retry-After', () => {
    const full = {
      'Content-Type': 'application/problem+json',
      'RateLimit-Policy': '"points";q=100;w=60',
      RateLimit: '"points";r=100;t=60',
    }

    const none = { 'RateLimit-Policy': '"points";q=0;w=60', RateLimit: '"points";r=0;t=60' }

    it('is returned immediately, and delays no other call', async () => {
      const reasons: string[] = []
      const api = scriptedApi({ status: 429, headers: full, body: naming('points') }, {})
      const onGiveUp = ({ reason }: GiveUpEvent) => void reasons.push(reason)
      const fetch = createFetch({ fetch: api.fetch, observers: { onGiveUp } })
      const refused = await settled(fetch(`${origin}/graphql`))
      expect(refused.status).toBe(429)
      expect(await refused.json()).toEqual({ 'violated-policies': ['points'] })
      expect((await settled(fetch(`${origin}/graphql`))).status).toBe(200)
      expect(api.times()).toEqual([0, 0])
      expect(reasons).toEqual(['cost'])
    })

    it.each<[what: string, script: ScriptedAnswer]>([
      ['the server tells a wait', { headers: { ...full, 'Retry-After': '60' } }],
      ['some units are taken', { headers: { ...full, RateLimit: '"points";r=99;t=60' } }],
      ['the limit is 0', { headers: { ...full, ...none } }],
      ['it lists another policy', { body: naming('day') }],
      ['it lists none', { body: '{}' }],
    ])('is still awaited if %s', async (_, script) => {
      const api = scriptedApi({ status: 429, headers: full, body: naming('points'), ...script }, {})
      const call = createFetch({ fetch: api.fetch })(`${origin}/graphql`)
      expect((await settled(call)).status).toBe(200)
      expect(api.times()).toEqual([0, 60_000])
    })
  })

  it('unblocks calls that only its headers blocked', async () => {
    const body = new TextEncoder().encode(naming('day'))
    const late = (): ReadableStream<Uint8Array> =>
      new ReadableStream({
        start: (controller) =>
          void setTimeout(() => {
            controller.enqueue(body)
            controller.close()
          }, 500),
      })
    const { fetch: send, timesMs } = answering(
      () => new Response('', { headers: { RateLimit: '"burst";r=9;t=1' } }),
      () => new Response(late(), { status: 429, headers: told }),
    )
    const fetch = createFetch({ fetch: send, retries: 0 })
    await fetch(`${origin}/cheap`)
    const refused = fetch(`${origin}/costly`)
    await vi.advanceTimersByTimeAsync(10)
    await settled(Promise.all([refused, fetch(`${origin}/cheap`)]))
    expect(timesMs).toEqual([0, 0, 500])
  })
})
