import type { Handler } from '@sluice/http'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../adapter-conformance.ts'
import type { Limits } from '../drivers/driver.ts'

/** What middleware leaves to its framework. Nest has exceptions and modules of its own for both. */
export const middleware: Behaviour = ({ driver, start }) => {
  it("handler: 'throw' lets the error handler refuse, with the refusal's headers", async () => {
    const onError = vi.fn()
    const limits = { limit: 1, window: '1m', handler: 'throw' } as Limits
    const app = await start({ limits: [limits], onError })
    await app.ask()
    const answer = await app.ask()

    expect([answer.status, answer.body]).toEqual([500, 'Too Many Requests'])
    const wait = '60'
    if (!driver.refusesAlone) expect(answer.field('retry-after')).toBe(wait)
    expect(onError).toHaveBeenCalledTimes(1)
    expect(onError.mock.calls[0]?.[0]).toBeInstanceOf(Error)
    expect(onError.mock.calls[0]?.[0]).toMatchObject({
      ...{ name: 'RateLimitError', code: 'SLUICE_REFUSED', status: 429, statusCode: 429 },
      headers: { 'Retry-After': wait, 'Cache-Control': 'no-store' },
      decision: { allowed: false },
    })
  })

  it('serves a handler under a path, and passes on other requests', async () => {
    const handler: Handler = async ({ method, path, query }) => {
      if (path === '/boom') throw new Error('boom')
      if (path === '/empty') return { status: 204 }
      if (path === '/own' || path === '/nothing') return undefined
      const body = `${method} ${path} ${query.get('q')}`
      return { status: 201, headers: { 'x-handled': 'yes' }, body }
    }
    const app = await start({ mounts: [['/limits', handler]], routes: [{ path: '/limits/own' }] })

    const answer = await app.ask('/limits/a/b?q=1')
    expect([answer.status, answer.body]).toEqual([201, 'GET /a/b 1'])
    expect(answer.field('x-handled')).toBe('yes')
    expect((await app.ask('/limits')).body).toBe('GET / null')
    expect((await app.ask('/limits/empty')).status).toBe(204)
    expect((await app.ask('/limits/own')).body).toBe('hello')
    expect((await app.ask('/limits/nothing')).status).toBe(404)
    const failed = await app.ask('/limits/boom')
    expect([failed.status, failed.body]).toEqual([500, 'boom'])
  })
}
