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

  it('lets a handler reply to the decision, with the headers set', async () => {
    const reached = vi.fn()
    const reply = vi.fn(async () => 'my own words')
    const limits = [{ ...one, reply }]
    const app = await start({ limits, routes: [{ path: '/', reached }] })
    await app.ask()
    const answer = await app.ask()

    expect([answer.status, answer.body]).toEqual([418, 'my own words'])
    expect(answer.field('retry-after')).toBe('30')
    expect(answer.field('cache-control')).toBe('no-store')
    expect(reached).toHaveBeenCalledTimes(1)
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
}

function raise(message: string): never {
  throw new Error(message)
}
