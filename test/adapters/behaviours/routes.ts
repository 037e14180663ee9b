import { expect, it } from 'vitest'
import type { Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'

const of = (limit: number) => ({ limit, window: '1m' }) as const

/** What applies to a request by its method and path. */
export const routeRules: Behaviour = ({ start }) => {
  it('lets HEAD and GET share the quota of a route', async () => {
    const app = await start({ routes: [{ path: '/x', limits: { limit: 2, window: '1m' } }] })
    expect(await app.statuses(1, '/x', { method: 'HEAD' })).toEqual([200])
    expect(await app.statuses(2, '/x')).toEqual([200, 429])
    expect(await app.statuses(1, '/x', { method: 'HEAD' })).toEqual([429])
  })

  it('reports the limits that apply, under distinct names', async () => {
    const rules = { 'POST /login': { ...of(5), combine: 'add' }, 'GET /export': of(7) } as const
    const subject = await start({
      limits: [{ ...of(100), headers: ['draft-11'], routes: rules }],
      routes: [{ path: '/' }, { path: '/login', method: 'POST' }, { path: '/export' }],
    })

    expect(limitFields(await subject.ask('/login', { method: 'POST' }))).toEqual({
      'ratelimit-policy': '"default";q=100;w=60, "default-POST-login";q=5;w=60',
      ratelimit: '"default";r=99;t=60, "default-POST-login";r=4;t=60',
    })
    expect(limitFields(await subject.ask('/export'))).toEqual({
      'ratelimit-policy': '"default-GET-export";q=7;w=60',
      ratelimit: '"default-GET-export";r=6;t=60',
    })
    expect(limitFields(await subject.ask('/'))).toMatchObject({ ratelimit: '"default";r=98;t=60' })
  })
}
