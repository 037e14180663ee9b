import { unlimited } from '@sluice/core'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'

/** Passing, refusing, and what clients are told. */
export const basics: Behaviour = ({ start, limited }) => {
  it('V01: tells a first request where it stands, byte for byte', async () => {
    const app = await limited({ limit: 100, window: '1m', algorithm: 'fixed-window' })

    const answer = await app.ask()

    expect(answer.status).toBe(200)
    expect(answer.body).toBe('hello')
    expect(limitFields(answer)).toEqual({
      'ratelimit-policy': '"default";q=100;w=60',
      ratelimit: '"default";r=99;t=60',
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '99',
      'x-ratelimit-reset': '1795195861',
    })
  })

  it('H04: refuses the sixth request in a window of five with a problem that no cache keeps', async () => {
    const reached = vi.fn()
    const app = await start({
      limits: [{ limit: 5, window: '30s', algorithm: 'fixed-window' }],
      routes: [{ path: '/', reached }],
    })

    expect(await app.statuses(5)).toEqual([200, 200, 200, 200, 200])
    const answer = await app.ask('/', { headers: { accept: '*/*' } })

    expect(answer.status).toBe(429)
    expect(answer.field('content-type')).toBe('application/problem+json')
    expect(answer.field('cache-control')).toBe('no-store')
    expect(answer.body).toBe(
      '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded",' +
        '"status":429,"violated-policies":["default"]}',
    )
    expect(limitFields(answer)).toEqual({
      'ratelimit-policy': '"default";q=5;w=30',
      ratelimit: '"default";r=0;t=30',
      'x-ratelimit-limit': '5',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1795195831',
      'retry-after': '30',
    })
    expect(reached).toHaveBeenCalledTimes(5)
  })

  it('keeps the promise of Retry-After: refused a millisecond before, admitted at it', async () => {
    const app = await limited({ limit: 1, window: 1500 })
    expect(await app.statuses(2)).toEqual([200, 429])

    vi.setSystemTime(Date.now() + 1499)
    expect(await app.statuses(1)).toEqual([429])
    vi.setSystemTime(Date.now() + 1)
    expect(await app.statuses(1)).toEqual([200])
  })

  it('lets HEAD and GET share one quota, and replies to HEAD without a body', async () => {
    const app = await limited({ limit: 2, window: '1m' })

    expect(await app.statuses(1, '/', { method: 'HEAD' })).toEqual([200])
    expect(await app.statuses(1)).toEqual([200])
    const refused = await app.ask('/', { method: 'HEAD' })

    expect(refused.status).toBe(429)
    expect(refused.body).toBe('')
    expect(refused.field('retry-after')).toBe('60')
  })

  it('lets HEAD and GET share the quota of a route', async () => {
    const app = await start({ routes: [{ path: '/x', limits: { limit: 2, window: '1m' } }] })

    expect(await app.statuses(1, '/x', { method: 'HEAD' })).toEqual([200])
    expect(await app.statuses(2, '/x')).toEqual([200, 429])
    expect(await app.statuses(1, '/x', { method: 'HEAD' })).toEqual([429])
  })

  it('H18: leaves a preflight alone, and counts every other OPTIONS', async () => {
    const app = await limited({ limit: 1, window: '1m', exposeHeaders: true })
    const preflight = { origin: 'https://a.example', 'access-control-request-method': 'GET' }

    for (let i = 0; i < 3; i += 1) {
      const answer = await app.ask('/', { method: 'OPTIONS', headers: preflight })
      expect(answer.status).not.toBe(429)
      expect(limitFields(answer)).toEqual({})
      expect(answer.field('access-control-expose-headers')).toBeUndefined()
    }
    const { origin } = preflight
    expect(await app.statuses(1)).toEqual([200])
    const statuses = await app.statuses(1, '/', { method: 'OPTIONS', headers: { origin } })
    expect(statuses).toEqual([429])
  })

  it.each([304, 206, 404, 500])('H16: sends the same fields with status %i', async (status) => {
    const app = await start({
      limits: [{ limit: 3, window: '1m' }],
      routes: [{ path: '/', answer: { status } }],
    })

    const answer = await app.ask()

    expect(answer.status).toBe(status)
    expect(answer.field('ratelimit')).toBe('"default";r=2;t=60')
    expect(answer.field('retry-after')).toBeUndefined()
  })

  it('limits unknown paths too', async () => {
    const app = await limited({ limit: 2, window: '1m' })

    expect(await app.statuses(1, '/nowhere')).toEqual([404])
    expect(await app.statuses(2, '/elsewhere')).toEqual([404, 429])
  })

  it('decides several policies together, and charges none when one denies', async () => {
    const app = await limited({
      policies: [
        { name: 'burst', limit: 1, window: '1s', algorithm: 'fixed-window' },
        { name: 'sustained', limit: 10, window: '1m', algorithm: 'fixed-window' },
      ],
    })
    expect(await app.statuses(3)).toEqual([200, 429, 429])

    vi.setSystemTime(Date.now() + 1000)
    const answer = await app.ask()

    expect(answer.field('ratelimit-policy')).toBe('"burst";q=1;w=1, "sustained";q=10;w=60')
    expect(answer.field('ratelimit')).toBe('"burst";r=0;t=1, "sustained";r=8;t=59')
    expect(answer.field('x-ratelimit-limit')).toBe('1')
  })

  it('limit 0 blocks everything, and promises nothing', async () => {
    const answer = await (await limited({ limit: 0, window: '1m' })).ask()

    expect(answer.status).toBe(429)
    expect(answer.field('retry-after')).toBeUndefined()
    expect(answer.field('ratelimit')).toBe('"default";r=0')
  })

  it('says nothing of an unlimited policy', async () => {
    const app = await limited({ limit: unlimited, window: '1m' })

    expect(limitFields(await app.ask())).toEqual({})
    expect(await app.statuses(20)).toEqual(Array(20).fill(200))
  })

  it('H36: 200 requests at once on one key: exactly the limit passes', async () => {
    const app = await limited({ limit: 25, window: '1m' })

    const answers = await Promise.all(Array.from({ length: 200 }, () => app.ask()))

    const passed = answers.filter(({ status }) => status === 200)
    expect(passed).toHaveLength(25)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(175)
    const remaining = passed.map((answer) => Number(answer.field('x-ratelimit-remaining')))
    expect(remaining.sort((a, b) => b - a)).toEqual(Array.from({ length: 25 }, (_, i) => 24 - i))
  })
}
