import { expect, it, vi } from 'vitest'
import { type Behaviour, startApp } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'
import type { Limits } from '../drivers/driver.ts'

const fixed = { limit: 1, window: '30s', algorithm: 'fixed-window' } as const

/** What is on the response besides the quota itself, and what others have put there before. */
export const responseHeaders: Behaviour = ({ driver, start }) => {
  it('H20, H24: extends Access-Control-Expose-Headers, and no other field', async () => {
    const before = { 'Access-Control-Expose-Headers': 'ETag' }
    const exposed = async (limits: Limits) => {
      const app = await start({ limits: [{ ...fixed, headers: ['draft-11'], ...limits }], before })
      const answers = [await app.ask(), await app.ask()]
      return answers.map((answer) => answer.field('access-control-expose-headers'))
    }
    const ours = 'RateLimit, RateLimit-Policy, Retry-After'

    const joined = `ETag, ${ours}`
    const refused = driver.refusesAlone ? ours : joined
    expect(await exposed({ exposeHeaders: true })).toEqual([joined, refused])
    expect((await exposed({}))[0]).toBe('ETag')
  })

  it.skipIf(driver.refusesAlone)('H26: keeps a longer existing Retry-After', async () => {
    const app = await start({ limits: [fixed], before: { 'Retry-After': '60' } })
    await app.ask()
    expect((await app.ask()).field('retry-after')).toBe('60')
  })

  it('§7.9: merges lists of another limiter, without duplicate names', async () => {
    const before = {
      RateLimit: '"edge";r=3;t=5, "default";r=9;t=9',
      'RateLimit-Policy': ['"edge";q=4;w=5', '"de,\\"fault";q=9;w=9', '10;w=1'],
    }
    const app = await start({ limits: [{ ...fixed, headers: ['draft-11'] }], before })
    const answer = await app.ask()
    expect(answer.field('ratelimit')).toBe('"edge";r=3;t=5, "default";r=0;t=30')
    expect(answer.field('ratelimit-policy')).toBe(
      '"edge";q=4;w=5, "de,\\"fault";q=9;w=9, "default";q=1;w=30',
    )
  })

  it('H15: sends headers with a redirect, and removes them with hideOnRedirect', async () => {
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

  it('H15: hideOnRedirect keeps headers set by others', async () => {
    const before = { RateLimit: '"edge";r=3;t=5', 'RateLimit-Policy': '"edge";q=4;w=5' }
    const routes = [{ path: '/', answer: { status: 307, fields: { location: '/there' } } }]
    const app = await start({ limits: [{ ...fixed, hideOnRedirect: true }], before, routes })
    const { ratelimit, 'ratelimit-policy': policy, ...rest } = limitFields(await app.ask())
    expect([ratelimit, policy, rest]).toEqual([...Object.values(before), {}])
  })

  it.each([200, 304, 404])('hideOnRedirect keeps the fields with status %i', async (status) => {
    const limits = [{ ...fixed, hideOnRedirect: true }]
    const app = await start({ limits, routes: [{ path: '/', answer: { status } }] })
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
}
