import { type InvalidEvent, unlimited } from '@sluice/core'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'
import { type NativeRequest, sentPath } from '../drivers/driver.ts'

/** What users' functions say of a request: whether it is skipped, its cost, and its limit. */
export const requestValues: Behaviour = ({ start, limited }) => {
  it.each([
    ['a function', (request: NativeRequest) => sentPath(request) === '/free'],
    ['an async function', async (request: NativeRequest) => sentPath(request) === '/free'],
  ])('H14: skips what %s says, without headers and without counting', async (_, skip) => {
    const app = await limited({ limit: 1, window: '1m', skip })

    expect(limitFields(await app.ask('/free'))).toEqual({})
    expect(await app.statuses(3, '/free')).toEqual([404, 404, 404])
    expect(await app.statuses(2)).toEqual([200, 429])
  })

  it('takes a fixed cost', async () => {
    const app = await limited({ limit: 10, window: '1m', cost: 4 })

    expect((await app.ask()).field('x-ratelimit-remaining')).toBe('6')
    expect(await app.statuses(2)).toEqual([200, 429])
  })

  it.each([
    ['a function', (request: NativeRequest) => Number(request.headers['x-cost'])],
    ['an async function', async (request: NativeRequest) => Number(request.headers['x-cost'])],
  ])('takes the cost that %s finds', async (_, cost) => {
    const app = await limited({ limit: 10, window: '1m', cost })

    expect(await app.statuses(1, '/', { headers: { 'x-cost': '7' } })).toEqual([200])
    expect(await app.statuses(1, '/', { headers: { 'x-cost': '4' } })).toEqual([429])
    expect(await app.statuses(1, '/', { headers: { 'x-cost': '0' } })).toEqual([200])
    expect(await app.statuses(1, '/', { headers: { 'x-cost': '3' } })).toEqual([200])
  })

  it('omits Retry-After where the cost is above the limit, since no wait helps', async () => {
    const answer = await (await limited({ limit: 10, window: '1m', cost: 11 })).ask()

    expect(answer.status).toBe(429)
    expect(answer.field('retry-after')).toBeUndefined()
  })

  it.each([Number.NaN, -1, 0.5, '1', undefined, Number.POSITIVE_INFINITY, 2 ** 53])(
    'counts 1 where a cost function yields %s, and reports it',
    async (value) => {
      const onInvalid = vi.fn<(event: InvalidEvent) => void>()
      const cost = () => value as number
      const app = await limited({ limit: 5, window: '1m', cost, observers: { onInvalid } })

      expect((await app.ask()).field('x-ratelimit-remaining')).toBe('4')
      expect(onInvalid).toHaveBeenCalledExactlyOnceWith({
        code: 'SLUICE_COST_INVALID',
        message: expect.stringContaining('1 stood in'),
      })
    },
  )

  it('counts another cost of each policy', async () => {
    const app = await limited({
      cost: 2,
      policies: [
        { name: 'requests', limit: 10, window: '1m', cost: 1 },
        { name: 'points', limit: 10, window: '1m', cost: async () => 5 },
        { name: 'default-cost', limit: 10, window: '1m' },
      ],
    })

    const available = (await app.ask()).field('ratelimit')

    expect(available).toMatch(/^"requests";r=9;.*"points";r=5;.*"default-cost";r=8;/)
  })

  it.each([
    ['a function', (request: NativeRequest) => limitOf(request)],
    ['an async function', async (request: NativeRequest) => limitOf(request)],
  ])('limits tiers as %s says', async (_, limit) => {
    const key = (request: NativeRequest) => `plan:${request.headers['x-plan']}`
    const app = await limited({ limit, defaultLimit: 1, window: '1m', key })
    const plan = (name: string) => ({ headers: { 'x-plan': name } })

    expect(await app.statuses(3, '/', plan('pro'))).toEqual([200, 200, 429])
    expect(await app.statuses(9, '/', plan('enterprise'))).toEqual(Array(9).fill(200))
    expect(limitFields(await app.ask('/', plan('enterprise')))).toEqual({})
    expect(await app.statuses(1, '/', plan('banned'))).toEqual([429])
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1, 1.5, '9', undefined, 2 ** 53 - 1])(
    'falls back to the default limit where a limit function yields %s, and reports it',
    async (value) => {
      const onInvalid = vi.fn<(event: InvalidEvent) => void>()
      const limit = () => value as number
      const app = await limited({ limit, defaultLimit: 2, window: '1m', observers: { onInvalid } })

      expect(await app.statuses(3)).toEqual([200, 200, 429])
      expect(onInvalid).toHaveBeenCalledTimes(3)
      expect(onInvalid).toHaveBeenCalledWith({
        code: 'SLUICE_LIMIT_INVALID',
        message: expect.stringContaining('defaultLimit (2) stood in'),
      })
    },
  )

  it('warns once where nobody observes, however many values are of no use', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    let cost = 0
    const app = await start({
      limits: [{ limit: 5, window: '1m', name: `warned-${Math.random()}`, cost: () => --cost }],
    })
    await app.statuses(3)

    expect(cost).toBe(-3)
    const texts = warn.mock.calls.map(([text]) => String(text))
    // A test before this one may have been the first to set it off.
    expect(texts.filter((text) => text.includes('cost')).length).toBeLessThanOrEqual(1)
  })

  it.each([
    ['limit', { limit: () => raise('no limit'), defaultLimit: 1 }],
    ['limit', { limit: async () => raise('no limit'), defaultLimit: 1 }],
    ['cost', { limit: 1, cost: () => raise('no cost') }],
    ['cost', { limit: 1, cost: async () => raise('no cost') }],
  ])(
    'hands on to the error handling what a %s function throws or rejects with',
    async (name, options) => {
      const answer = await (await limited({ window: '1m', ...options })).ask()

      expect([answer.status, answer.body]).toEqual([500, `no ${name}`])
      expect(limitFields(answer)).toEqual({})
    },
  )
}

function limitOf(request: NativeRequest): number | typeof unlimited {
  const plan = request.headers['x-plan']
  if (plan === 'enterprise') return unlimited
  return plan === 'pro' ? 2 : 0
}

function raise(message: string): never {
  throw new Error(message)
}
