import { expect, it } from 'vitest'
import { scaled } from '../../support/scale.ts'
import type { Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'

/** Attempts to get past a limit. */
const attempts = scaled(20, 200)
const one = { limit: 1, window: '1m' } as const
const preflight = {
  method: 'OPTIONS',
  headers: { origin: 'https://a.example', 'access-control-request-method': 'POST' },
}

/** Requests that look like a preflight of CORS: a browser must not be refused, and nobody may use the shape to get past a limit. */
export const preflights: Behaviour = ({ start, limited }) => {
  it("preflights: 'count' counts them, and tells so", async () => {
    const app = await limited({ ...one, preflights: 'count' })

    expect(limitFields(await app.ask('/', preflight))).toMatchObject({
      ratelimit: '"default";r=0;t=60',
    })
    expect(await app.statuses(2, '/', preflight)).toEqual([429, 429])
    expect(await app.statuses(1)).toEqual([429])
  })

  it('never let more than the limit reach a handler of all methods that has the limit on its route', async () => {
    let reached = 0
    const app = await start({
      routes: [{ method: 'ALL', path: '/graphql', limits: one, reached: () => (reached += 1) }],
    })

    const statuses = await app.statuses(attempts, '/graphql', preflight)
    expect(statuses).toEqual([200, ...Array(attempts - 1).fill(429)])
    expect(reached).toBe(1)
  })

  it("preflights: 'pass' leaves them to such a handler, which answers them itself", async () => {
    const limits = { ...one, preflights: 'pass' as const }
    const app = await start({ routes: [{ method: 'ALL', path: '/graphql', limits }] })

    expect(await app.statuses(3, '/graphql', preflight)).toEqual([200, 200, 200])
    expect(await app.statuses(2, '/graphql')).toEqual([200, 429])
  })

  it("preflights: 'count' on the whole application keeps them from handlers of all methods", async () => {
    let reached = 0
    const app = await start({
      limits: [{ ...one, preflights: 'count' }],
      routes: [{ method: 'ALL', path: '/graphql', reached: () => (reached += 1) }],
    })

    await app.statuses(attempts, '/graphql', preflight)
    expect(reached).toBe(1)
  })

  it('charges, by itself, those that a handler of all methods answers as other requests', async () => {
    let reached = 0
    const app = await start({
      limits: [{ limit: 3, window: '1m' }],
      routes: [{ path: '/' }, { method: 'ALL', path: '/graphql', reached: () => (reached += 1) }],
    })

    const statuses = await app.statuses(attempts, '/graphql', preflight)
    expect(statuses).toEqual([200, 200, 200, ...Array(attempts - 3).fill(429)])
    expect(reached).toBe(3)
    expect(await app.statuses(1)).toEqual([429])
  })

  it('lets the preflights of an exhausted client pass, where no handler serves them', async () => {
    const app = await start({ limits: [one], routes: [{ path: '/' }, { path: '/b' }] })
    expect(await app.statuses(2)).toEqual([200, 429])

    const statuses = await app.statuses(20, '/b', preflight)
    expect(statuses).not.toContain(429)
    expect(await app.statuses(5, '/nowhere', preflight)).not.toContain(429)
  })

  it('is inherited by routes, which may say otherwise', async () => {
    const routes = { '/a': one, '/b': { ...one, preflights: 'pass' as const } }
    const app = await start({
      limits: [{ limit: 100, window: '1m', preflights: 'count', routes }],
      routes: [{ path: '/a' }, { path: '/b' }],
    })

    const last = async (path: string) => (await app.statuses(2, path, preflight)).at(-1)
    expect(await last('/a')).toBe(429)
    expect(await last('/b')).not.toBe(429)
  })

  it.each(['skip', true, null])('preflights: %j is refused', async (value) => {
    const limits = { ...one, preflights: value as 'count' }
    await expect(limited(limits)).rejects.toThrow(/preflights must be one of 'pass', 'count'/)
  })
}
