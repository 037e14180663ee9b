import { expect, it, vi } from 'vitest'
import { type Behaviour, startApp } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'
import type { Limits } from '../drivers/driver.ts'

const fixed = { limit: 1, window: '30s', algorithm: 'fixed-window' } as const

/** What is on the response besides the quota itself, and what others have put there before. */
export const responseHeaders: Behaviour = ({ driver, start, limited }) => {
  it.each<[string, Limits['headers'] & {}, string]>([
    ['H20', ['draft-11'], 'RateLimit, RateLimit-Policy, Retry-After'],
    ['H21', ['draft-7'], 'RateLimit, RateLimit-Policy, Retry-After'],
    [
      'H22',
      ['draft-6'],
      'RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, RateLimit-Reset, Retry-After',
    ],
    ['H23', ['legacy'], 'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After'],
  ])('%s: lets other origins read the fields of %s', async (_, headers, exposed) => {
    const app = await limited({ ...fixed, headers, exposeHeaders: true })

    expect((await app.ask()).field('access-control-expose-headers')).toBe(exposed)
    expect((await app.ask()).field('access-control-expose-headers')).toBe(exposed)
  })

  it.each([
    ['ETag', 'ETag, RateLimit, RateLimit-Policy, Retry-After'],
    ['*', '*'],
    ['etag, ratelimit', 'etag, ratelimit, RateLimit-Policy, Retry-After'],
  ])('H24: adds to an existing list of %s', async (existing, exposed) => {
    const app = await start({
      limits: [{ ...fixed, headers: ['draft-11'], exposeHeaders: true }],
      before: { 'Access-Control-Expose-Headers': existing },
    })

    expect((await app.ask()).field('access-control-expose-headers')).toBe(exposed)
  })

  it('exposes nothing unless asked to', async () => {
    const answer = await (await limited(fixed)).ask()

    expect(answer.field('access-control-expose-headers')).toBeUndefined()
  })

  it.skipIf(driver.refusesAlone).each([
    ['60', '60'],
    ['10', '30'],
    ['soon', '30'],
    ['Fri, 20 Nov 2026 17:31:30 GMT', '90'],
  ])('H26: an existing Retry-After of %s becomes %s', async (existing, merged) => {
    const app = await start({ limits: [fixed], before: { 'Retry-After': existing } })
    await app.ask()

    expect((await app.ask()).field('retry-after')).toBe(merged)
  })

  it('leaves an existing Retry-After of an allowed request alone', async () => {
    const app = await start({ limits: [fixed], before: { 'Retry-After': '7' } })

    expect((await app.ask()).field('retry-after')).toBe('7')
  })

  it('§7.9: joins lists of another limiter, without two items of one name', async () => {
    const app = await start({
      limits: [{ ...fixed, headers: ['draft-11'] }],
      before: {
        RateLimit: '"edge";r=3;t=5, "default";r=9;t=9',
        'RateLimit-Policy': ['"edge";q=4;w=5', '"de,\\"fault";q=9;w=9', '10;w=1'],
      },
    })

    const answer = await app.ask()

    expect(answer.field('ratelimit')).toBe('"edge";r=3;t=5, "default";r=0;t=30')
    expect(answer.field('ratelimit-policy')).toBe(
      '"edge";q=4;w=5, "de,\\"fault";q=9;w=9, "default";q=1;w=30',
    )
  })

  it.each<[string, Record<string, string>]>([
    ['draft-3 to draft-6', { 'RateLimit-Policy': '10;w=1', 'RateLimit-Limit': '10' }],
    ['draft-6', { 'RateLimit-Remaining': '9', 'RateLimit-Reset': '1' }],
    ['draft-7', { 'RateLimit-Policy': '10;w=1', RateLimit: 'limit=10, remaining=9, reset=1' }],
  ])('H30: replaces fields of %s, which have other types', async (_, before) => {
    const app = await start({ limits: [{ ...fixed, headers: ['draft-11'] }], before })

    expect(limitFields(await app.ask())).toEqual({
      'ratelimit-policy': '"default";q=1;w=30',
      ratelimit: '"default";r=0;t=30',
    })
  })

  it('H30: replaces lists where it speaks draft-6', async () => {
    const before = { 'RateLimit-Policy': '"a";q=1;w=1', RateLimit: '"a";r=1;t=1' }
    const app = await start({ limits: [{ ...fixed, headers: ['draft-6'] }], before })

    expect(limitFields(await app.ask())).toEqual({
      'ratelimit-policy': '1;w=30',
      'ratelimit-limit': '1',
      'ratelimit-remaining': '0',
      'ratelimit-reset': '30',
    })
  })

  it('leaves fields alone that it does not send', async () => {
    const before = { RateLimit: '"edge";r=3;t=5', 'X-RateLimit-Limit': '9' }
    const app = await start({ limits: [{ ...fixed, headers: [] }], before })

    expect(limitFields(await app.ask())).toEqual({
      ratelimit: '"edge";r=3;t=5',
      'x-ratelimit-limit': '9',
    })
  })

  it('H15: sends the fields with a redirect, and takes them off with hideOnRedirect', async () => {
    const routes = [{ path: '/', answer: { status: 302, fields: { location: '/there' } } }]
    const shown = await start({ limits: [fixed], routes })
    expect((await shown.ask()).field('ratelimit')).toBe('"default";r=0;t=30')

    const limits = [{ ...fixed, hideOnRedirect: true }]
    const hidden = await start({ limits, routes })
    const redirect = await hidden.ask()
    expect(redirect.status).toBe(302)
    expect(redirect.field('location')).toBe('/there')
    expect(limitFields(redirect)).toEqual({})
    expect((await hidden.ask()).field('retry-after')).toBe('30')
  })

  it('H15: hideOnRedirect leaves on a redirect what others have put there', async () => {
    const app = await start({
      limits: [{ ...fixed, hideOnRedirect: true }],
      before: { RateLimit: '"edge";r=3;t=5', 'RateLimit-Policy': '"edge";q=4;w=5' },
      routes: [{ path: '/', answer: { status: 307, fields: { location: '/there' } } }],
    })

    expect(limitFields(await app.ask())).toEqual({
      ratelimit: '"edge";r=3;t=5',
      'ratelimit-policy': '"edge";q=4;w=5',
    })
  })

  it.each([200, 304, 404])('hideOnRedirect keeps the fields with status %i', async (status) => {
    const app = await start({
      limits: [{ ...fixed, hideOnRedirect: true }],
      routes: [{ path: '/', answer: { status } }],
    })

    expect((await app.ask()).field('ratelimit')).toBe('"default";r=0;t=30')
  })

  it.skipIf(driver.startsLate)(
    'H19: sets nothing once the head is sent, and does not throw',
    async () => {
      const onError = vi.fn()
      const limits = [{ ...fixed, limit: 5, hideOnRedirect: true, exposeHeaders: true }]
      const app = await startApp(driver, { limits, startsEarly: true, onError })

      const answer = await app.ask()

      expect([answer.status, answer.body]).toEqual([200, 'early hello'])
      expect(limitFields(answer)).toEqual({})
      expect(answer.field('trailer')).toBeUndefined()
      expect(onError).not.toHaveBeenCalled()
    },
  )

  it('H31: sends the extras of GitHub', async () => {
    const app = await limited({ ...fixed, limit: 100, headers: ['legacy-github'] })

    expect(limitFields(await app.ask())).toEqual({
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '99',
      'x-ratelimit-reset': '1795195831',
      'x-ratelimit-used': '1',
      'x-ratelimit-resource': 'default',
    })
  })

  it('H32: jitter adds to Retry-After, and to nothing else', async () => {
    const app = await limited({ ...fixed, retryJitter: 0.1 })
    await app.ask()
    vi.spyOn(Math, 'random').mockReturnValue(0.8)

    const answer = await app.ask()

    expect(answer.field('retry-after')).toBe('33')
    expect(answer.field('ratelimit')).toBe('"default";r=0;t=30')
    expect(answer.field('x-ratelimit-reset')).toBe('1795195831')
  })
}
