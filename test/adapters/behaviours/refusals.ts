import { expect, it, vi } from 'vitest'
import type { App, Behaviour } from '../adapter-conformance.ts'
import { type Limits, sentPath } from '../drivers/driver.ts'

const one = { limit: 1, window: '30s', algorithm: 'fixed-window' } as const

/** What a refused client reads, beside what `adapterConformance` tries. */
export const refusals: Behaviour = ({ start, limited }) => {
  async function refused(limits: Limits): Promise<Awaited<ReturnType<App['ask']>>> {
    const app = await limited(limits)
    await app.ask()
    return await app.ask()
  }

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

  it('sends the problem where a message function yields nothing', async () => {
    const answer = await refused({ ...one, message: (() => undefined) as never })

    expect(JSON.parse(answer.body)).toMatchObject({ title: 'Quota Exceeded', status: 429 })
  })

  it('lets a handler reply, with the headers set', async () => {
    const reached = vi.fn()
    const limits = [{ ...one, reply: async () => 'my own words' }]
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

  it('countDenied extends the wait with every attempt', async () => {
    const app = await limited({ ...one, algorithm: 'sliding-log', countDenied: true })
    expect(await app.statuses(2)).toEqual([200, 429])
    vi.setSystemTime(Date.now() + 29_000)
    expect(await app.statuses(1)).toEqual([429])
    vi.setSystemTime(Date.now() + 29_000)
    expect(await app.statuses(1)).toEqual([429])
  })

  it('countDenied names no policy that had room, and tells its wait', async () => {
    const attempts = { name: 'attempts', limit: 2, window: '1h', countDenied: true } as const
    const answer = await refused({ policies: [{ ...one, name: 'login' }, attempts] })
    expect(JSON.parse(answer.body)).toMatchObject({ 'violated-policies': ['login'] })
    expect(answer.field('ratelimit')).toBe('"login";r=0;t=30, "attempts";r=0;t=3600')
    expect(answer.field('retry-after')).toBe('3600')
  })
}

function raise(message: string): never {
  throw new Error(message)
}
