import type { DecisionEvent } from '@sluice/core'
import { type AdaptiveOptions, adaptive, tiers } from '@sluice/express'
import { expect, it, vi } from 'vitest'
import type { App, Behaviour } from '../../adapters/adapter-conformance.ts'
import { limitFields } from '../../adapters/ask.ts'
import { type Limits, type NativeRequest, sentPath } from '../../adapters/drivers/driver.ts'

const marks = { low: 10, high: 20 }
const _planOf = ({ headers }: NativeRequest) => headers['x-plan']?.toString()
const costOf = ({ headers }: NativeRequest) => Number(headers['x-cost'] ?? 1)

/** Limits by tier, by time and by load, what is left free, and who is refused first. */
export const movingLimits: Behaviour = ({ start, limited }) => {
  const _plan = (name: string) => ({ headers: { 'x-plan': name } })

  it('hands on to the error handling what the function of tiers throws', async () => {
    const limit = tiers({ default: 1 }, () => raise('no plan'))
    const answer = await (await limited({ window: '1m', limit })).ask()

    expect([answer.status, answer.body]).toEqual([500, 'no plan'])
  })

  /** An application whose limit has gone down to `min`, and of which `used` units were taken 3510 seconds ago. */
  async function reduced(limits: Partial<Limits>, used = 250): Promise<App> {
    const options: AdaptiveOptions = { ...marks, min: 250, max: 1_000, signal: () => 100 }
    const app = await limited({
      policies: [
        {
          name: 'hourly',
          limit: adaptive(options),
          window: '1h',
          algorithm: 'fixed-window',
          cost: costOf,
        },
      ],
      headers: ['draft-11'],
      ...limits,
    })
    await app.ask('/', { headers: { 'x-cost': String(used) } })
    for (let second = 0; second < 30; second += 1) {
      vi.setSystemTime(Date.now() + 1_000)
      await app.ask('/', { headers: { 'x-cost': '0' } })
    }
    vi.setSystemTime(Date.now() + 3_480_000)
    return app
  }

  it('H10: says that capacity is reduced where a limit denies that is lower than in quiet times', async () => {
    const answer = await (await reduced({})).ask()

    expect(answer.status).toBe(503)
    expect(limitFields(answer)).toEqual({
      'retry-after': '90',
      'ratelimit-policy': '"hourly";q=250;w=3600',
      ratelimit: '"hourly";r=0;t=90',
    })
    expect(answer.field('cache-control')).toBe('no-store')
    expect(answer.field('content-type')).toBe('application/problem+json')
    expect(answer.body).toBe(
      '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503,"violated-policies":["hourly"]}',
    )
  })

  it('lets pass what is within the reduced limit', async () => {
    const answer = await (await reduced({}, 249)).ask()

    expect([answer.status, answer.field('ratelimit')]).toEqual([200, '"hourly";r=0;t=90'])
  })

  it('says that a quota is exceeded where a limit that is not reduced denies too', async () => {
    const options: AdaptiveOptions = { ...marks, min: 1, max: 2, signal: () => 100 }
    const app = await limited({
      policies: [
        { name: 'moving', limit: adaptive(options), window: '1h' },
        { name: 'fixed', limit: 1, window: '1h' },
      ],
    })
    await app.ask()
    for (let second = 0; second < 10; second += 1) {
      vi.setSystemTime(Date.now() + 1_000)
      await app.ask()
    }
    const answer = await app.ask()

    expect(answer.status).toBe(429)
    expect(JSON.parse(answer.body)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Quota Exceeded',
      status: 429,
      'violated-policies': ['moving', 'fixed'],
    })
  })

  it('sends neither the status nor the text that are meant for quotas, but asks a message function', async () => {
    const fixed = await (await reduced({ message: 'You asked too often', statusCode: 420 })).ask()
    expect(fixed.status).toBe(503)
    expect(JSON.parse(fixed.body).title).toBe('Temporary Reduced Capacity')

    const found = await (
      await reduced({ message: (_, { retryAfterMs }) => `wait ${retryAfterMs}` })
    ).ask()
    expect([found.status, found.body]).toEqual([503, 'wait 90000'])
  })

  it('tells nothing of a hidden policy that is reduced', async () => {
    const options: AdaptiveOptions = { ...marks, min: 0, max: 1, signal: () => 100, smoothing: 1 }
    const app = await limited({
      name: 'secret',
      limit: adaptive(options),
      window: '1h',
      hidden: true,
    })
    await app.ask()
    vi.setSystemTime(Date.now() + 1_000)
    const answer = await app.ask()

    expect([answer.status, answer.body]).toEqual([
      503,
      '{"type":"about:blank","title":"Service Unavailable","status":503}',
    ])
    expect(JSON.stringify(answer.lines)).not.toContain('secret')
  })

  /** An application that is under so much pressure that only 'critical' passes. */
  async function shedding(limits: Partial<Limits> = {}, routes = [{ path: '/' }]): Promise<App> {
    const app = await start({
      limits: [
        {
          limit: 100,
          window: '1m',
          ...limits,
          shed: {
            ...marks,
            signal: () => 100,
            smoothing: 1,
            classes: ['batch', 'critical'],
            priority: ({ headers }) => headers['x-class']?.toString(),
          },
        },
      ],
      routes,
    })
    for (let second = 0; second < 2; second += 1) {
      await app.ask('/', critical)
      vi.setSystemTime(Date.now() + 1_000)
    }
    return app
  }
  const critical = { headers: { 'x-class': 'critical' } }
  const batch = { headers: { 'x-class': 'batch' } }

  it('sheds the least important class with 503, and neither charges it nor speaks of policies', async () => {
    const onDecision = vi.fn<(event: DecisionEvent) => void>()
    const app = await shedding({ observers: { onDecision } })
    onDecision.mockClear()
    const answer = await app.ask('/', batch)

    expect(answer.status).toBe(503)
    expect(limitFields(answer)).toEqual({ 'retry-after': '5' })
    expect(answer.field('cache-control')).toBe('no-store')
    expect(answer.field('content-type')).toBe('application/problem+json')
    expect(answer.body).toBe(
      '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503}',
    )
    expect(onDecision).toHaveBeenCalledOnce()
    expect(onDecision.mock.calls[0]?.[0]).toMatchObject({
      decision: { allowed: false, outcomes: [], retryAfterMs: 5_000, delayMs: 0, source: 'shed' },
      checks: [],
    })
    const passed = await app.ask('/', critical)
    expect([passed.status, passed.field('x-ratelimit-remaining')]).toEqual([200, '97'])
  })

  it('adds jitter to the wait of those that are shed', async () => {
    const app = await shedding({ retryJitter: 1 })
    vi.spyOn(Math, 'random').mockReturnValue(0.99)

    expect((await app.ask('/', batch)).field('retry-after')).toBe('10')
  })

  it('tells a handler, and a message function, what is shed', async () => {
    const app = await shedding({ message: (_, { source }) => `because of ${source}` })
    expect((await app.ask('/', batch)).body).toBe('because of shed')

    const replying = await shedding({ reply: ({ source }) => `reply to ${source}` })
    expect((await replying.ask('/', batch)).body).toBe('reply to shed')
  })

  it('never sheds preflights that pass, nor what is skipped', async () => {
    const skip: Limits['skip'] = (request) => sentPath(request) === '/skipped'
    const app = await shedding({ skip, preflights: 'pass' }, [{ path: '/' }, { path: '/skipped' }])

    expect((await app.ask('/', batch)).status).toBe(503)
    expect((await app.ask('/skipped', batch)).status).toBe(200)
    const preflight = { origin: 'https://example.com', 'access-control-request-method': 'GET' }
    const answer = await app.ask('/', { method: 'OPTIONS', headers: preflight })
    expect(answer.status).not.toBe(503)
  })

  it('sheds on routes with limits of their own too, and leaves alone what has none', async () => {
    const routes = { '/login': { limit: 5, window: '1m' }, '/health': false } as const
    const app = await shedding({ routes }, [{ path: '/' }, { path: '/login' }, { path: '/health' }])

    expect((await app.ask('/login', batch)).status).toBe(503)
    expect((await app.ask('/login', critical)).status).toBe(200)
    expect((await app.ask('/health', batch)).status).toBe(200)
  })

  it('hands on to the error handling what a priority function rejects with', async () => {
    const app = await limited({
      limit: 9,
      window: '1m',
      shed: {
        ...marks,
        signal: () => 100,
        smoothing: 1,
        classes: ['batch', 'critical'],
        priority: async () => raise('no class'),
      },
    })
    await app.ask()
    vi.setSystemTime(Date.now() + 1_000)
    const answer = await app.ask()

    expect([answer.status, answer.body]).toEqual([500, 'no class'])
  })
}

function raise(message: string): never {
  throw new Error(message)
}
