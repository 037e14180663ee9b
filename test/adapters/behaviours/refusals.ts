import { memoryStore } from '@sluice/core'
import { expect, it, vi } from 'vitest'
import type { App, Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'
import { type Limits, sentPath } from '../drivers/driver.ts'

const one = { limit: 1, window: '30s', algorithm: 'fixed-window' } as const

/** What a refused client reads. */
export const refusals: Behaviour = ({ start, limited }) => {
  async function refused(limits: Limits): Promise<Awaited<ReturnType<App['ask']>>> {
    const app = await limited(limits)
    await app.ask()
    return await app.ask()
  }

  it('H05: names all policies that deny', async () => {
    const answer = await refused({
      policies: [
        { name: 'burst', limit: 1, window: '1s' },
        { name: 'unhurt', limit: 9, window: '1m' },
        { name: 'daily', limit: 1, window: '1d' },
      ],
    })

    expect(JSON.parse(answer.body)['violated-policies']).toEqual(['burst', 'daily'])
    expect(answer.field('retry-after')).toBe('86400')
  })

  it.each([
    ['a problem', {}],
    ['a message', { message: 'Näh' }],
    ['an object', { message: { error: 'slow down' } }],
  ])('H17: refuses HEAD with all that GET has, but the body: %s', async (_, own) => {
    const app = await limited({ ...one, ...own })
    await app.ask()
    const got = await app.ask()
    const head = await app.ask('/', { method: 'HEAD' })

    expect([head.status, head.body]).toEqual([429, ''])
    expect(head.field('content-length')).toBe(String(Buffer.byteLength(got.body)))
    // The second may change between the two.
    const fieldsOf = (lines: readonly (readonly [string, string])[]) =>
      new Map(lines.filter(([name]) => name.toLowerCase() !== 'date'))
    expect(fieldsOf(head.lines)).toEqual(fieldsOf(got.lines))
  })

  it('H06: tells nothing of a hidden policy but when to come back', async () => {
    const answer = await refused({ ...one, hidden: true })

    expect(answer.status).toBe(429)
    expect(answer.body).toBe('{"type":"about:blank","title":"Too Many Requests","status":429}')
    expect(limitFields(answer)).toEqual({ 'retry-after': '30' })
  })

  it('lists visible policies beside a hidden one, and names it nowhere', async () => {
    const answer = await refused({
      policies: [
        { name: 'shown', limit: 5, window: '1m' },
        { name: 'secret', limit: 1, window: '1h', hidden: true },
      ],
    })

    expect(answer.status).toBe(429)
    expect(JSON.stringify([answer.lines, answer.body])).not.toContain('secret')
    expect(answer.field('ratelimit-policy')).toBe('"shown";q=5;w=60')
    expect(answer.field('retry-after')).toBe('3600')
  })

  it('headers: [] sends Retry-After alone, and names no policy in the body', async () => {
    const answer = await refused({ ...one, name: 'login', headers: [] })

    expect(limitFields(answer)).toEqual({ 'retry-after': '30' })
    expect(answer.body).toBe('{"type":"about:blank","title":"Too Many Requests","status":429}')
  })

  it.each([
    ['text', 'Slow down', 'text/plain; charset=utf-8', 'Slow down'],
    ['object', { error: 'slow' }, 'application/json', '{"error":"slow"}'],
    ['function', () => 'Wait', 'text/plain; charset=utf-8', 'Wait'],
    ['async function', async () => ({ wait: 1 }), 'application/json', '{"wait":1}'],
  ])(
    'sends a message that is a %s, with the headers of a refusal',
    async (_, message, type, body) => {
      const answer = await refused({ ...one, message })

      expect(answer.status).toBe(429)
      expect(answer.field('content-type')).toBe(type)
      expect(answer.body).toBe(body)
      expect(answer.field('retry-after')).toBe('30')
      expect(answer.field('cache-control')).toBe('no-store')
    },
  )

  it('tells a message function the request and the decision', async () => {
    const answer = await refused({
      ...one,
      message: (request, { retryAfterMs, outcomes }) => ({
        url: sentPath(request),
        retryAfterMs,
        of: outcomes.length,
      }),
    })

    expect(JSON.parse(answer.body)).toEqual({ url: '/', retryAfterMs: 30_000, of: 1 })
  })

  it.each([
    ['throws', () => raise('no message')],
    ['rejects', async () => raise('no message')],
  ])('hands on to the error handling when a message function %s', async (_, message) => {
    const answer = await refused({ ...one, message })

    expect([answer.status, answer.body]).toEqual([500, 'no message'])
  })

  it('sends the problem where a message function yields nothing', async () => {
    const answer = await refused({ ...one, message: (() => undefined) as never })

    expect(JSON.parse(answer.body)).toMatchObject({ title: 'Quota Exceeded', status: 429 })
  })

  it('refuses with the status that is asked for', async () => {
    const answer = await refused({ ...one, statusCode: 503 })

    expect(answer.status).toBe(503)
    expect(JSON.parse(answer.body).status).toBe(503)
    expect(answer.field('retry-after')).toBe('30')
  })

  it('lets a handler reply, with the headers set', async () => {
    const reached = vi.fn()
    const limits = [{ ...one, reply: async () => 'my own words', message: 'not this' }]
    const app = await start({ limits, routes: [{ path: '/', reached }] })
    await app.ask()
    const answer = await app.ask()

    expect([answer.status, answer.body]).toEqual([418, 'my own words'])
    expect(answer.field('retry-after')).toBe('30')
    expect(answer.field('cache-control')).toBe('no-store')
    expect(reached).toHaveBeenCalledTimes(1)
  })

  it('tells a handler the decision', async () => {
    const reply = vi.fn(() => 'x')
    await refused({ ...one, reply })

    expect(reply).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ allowed: false, retryAfterMs: 30_000, source: 'store' }),
    )
  })

  it.each([
    ['throws', () => raise('no reply')],
    ['rejects', async () => raise('no reply')],
  ])('hands on to the error handling when a handler %s', async (_, reply) => {
    const answer = await refused({ ...one, reply })

    expect([answer.status, answer.body]).toEqual([500, 'no reply'])
  })

  it('charges nothing for what is refused', async () => {
    const store = memoryStore()
    const app = await start({ limits: [{ limit: 2, window: '1m', store }] })
    await app.statuses(50)
    vi.setSystemTime(Date.now() + 60_000)

    expect(await app.statuses(3)).toEqual([200, 200, 429])
  })

  it('countDenied extends the wait with every attempt', async () => {
    const app = await limited({ ...one, algorithm: 'sliding-log', countDenied: true })
    expect(await app.statuses(2)).toEqual([200, 429])
    vi.setSystemTime(Date.now() + 29_000)
    expect(await app.statuses(1)).toEqual([429])
    vi.setSystemTime(Date.now() + 29_000)
    expect(await app.statuses(1)).toEqual([429])
  })
}

function raise(message: string): never {
  throw new Error(message)
}
