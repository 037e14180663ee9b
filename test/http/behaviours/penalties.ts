import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import { limitFields } from '../../adapters/ask.ts'

const penalty = { after: 3, within: '1m', for: '1h', factor: 2, max: '1d' } as const
const one = { limit: 1, window: '30s', algorithm: 'fixed-window', penalty } as const

const abnormal = (status: number, name: string) =>
  `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","title":"Abnormal Usage Detected","status":${status},"violated-policies":["${name}"]}`

/** What happens to those who are denied too often, or whom somebody blocks. */
export const penalties: Behaviour = ({ start, limited }) => {
  it('H11: a client that goes on is blocked, and told so by a problem of its own', async () => {
    const app = await limited({ ...one, penalty: { ...penalty, name: 'scan' } })
    await app.statuses(4)

    const answer = await app.ask()

    expect(answer.status).toBe(429)
    expect(answer.field('content-type')).toBe('application/problem+json')
    expect(answer.field('cache-control')).toBe('no-store')
    expect(answer.field('retry-after')).toBe('3600')
    expect(answer.body).toBe(abnormal(429, 'scan'))
  })

  it('the request whose denial leads to the block is told how long it is', async () => {
    const app = await limited(one)
    await app.statuses(3)
    const answer = await app.ask()
    expect(answer.field('retry-after')).toBe('3600')
    expect(JSON.parse(answer.body)).toMatchObject({ 'violated-policies': ['penalty'] })
  })

  it('is listed in no header, blocked or not', async () => {
    const app = await limited({ ...one, headers: ['draft-11', 'legacy'] })
    const before = await app.ask()
    await app.statuses(3)
    vi.advanceTimersByTime(60_000)
    const blocked = await app.ask()

    expect(limitFields(before)).toMatchObject({
      'ratelimit-policy': '"default";q=1;w=30',
      ratelimit: '"default";r=0;t=30',
    })
    // The quota has come back meanwhile; Retry-After alone tells of the block.
    expect(limitFields(blocked)).toEqual({
      'ratelimit-policy': '"default";q=1;w=30',
      ratelimit: '"default";r=1;t=30',
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '1',
      'x-ratelimit-reset': expect.any(String),
      'retry-after': '3540',
    })
  })

  it('hidden, it is named nowhere', async () => {
    const app = await limited({ ...one, penalty: { ...penalty, name: 'secret', hidden: true } })
    await app.statuses(4)
    vi.advanceTimersByTime(60_000)
    const answer = await app.ask()
    expect(answer.field('retry-after')).toBe('3540')
    expect(answer.body).toBe('{"type":"about:blank","title":"Too Many Requests","status":429}')
    expect(JSON.stringify(answer.lines)).not.toContain('secret')
  })

  it("has the guard's status code", async () => {
    const app = await limited({ ...one, statusCode: 403 })
    await app.statuses(4)
    const answer = await app.ask()
    expect(answer.status).toBe(403)
    expect(answer.body).toBe(abnormal(403, 'penalty'))
  })

  it('can look at another key than the quota does', async () => {
    const byUser = (request: { headers: Record<string, unknown> }) => String(request.headers.user)
    const app = await limited({ ...one, key: byUser, penalty: { ...penalty, key: () => 'house' } })
    const as = (user: string) => ({ headers: { user } })
    await app.ask('/', as('a'))
    await app.statuses(3, '/', as('a'))

    expect((await app.ask('/', as('b'))).body).toBe(abnormal(429, 'penalty'))
  })

  it('a route can have another one, or none', async () => {
    const limits = { limit: 1, window: '1m' } as const
    const app = await start({
      limits: [
        {
          limit: 100,
          window: '1m',
          penalty,
          routes: {
            '/strict': { ...limits, penalty: { after: 1, within: '1m', for: '5m' } },
            '/mild': { ...limits, penalty: false },
          },
        },
      ],
      routes: [{ path: '/' }, { path: '/strict' }, { path: '/mild' }],
    })
    await app.statuses(2, '/strict')
    expect((await app.ask('/strict')).field('retry-after')).toBe('300')
    await app.statuses(9, '/mild')
    expect((await app.ask('/mild')).body).toContain('quota-exceeded')
    expect(await app.statuses(1)).toEqual([200])
  })
}
