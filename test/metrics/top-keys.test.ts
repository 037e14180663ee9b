import { digestOf, memoryStore } from '@sluice/core'
import { collectMetrics } from '@sluice/metrics'
import { describe, expect, it, vi } from 'vitest'
import { exchange, guardOf } from '../http/exchange.ts'
import { fakeTime, limited } from './scrape.ts'

fakeTime()

describe('topKeys', () => {
  async function busy() {
    const store = memoryStore()
    const reveal = (key: string) => `name of ${key}`
    const { metrics, limiter } = limited({ limit: 5, store }, { store, reveal })
    for (let i = 0; i < 20; i += 1) await limiter.consume('greedy')
    for (let i = 0; i < 3; i += 1) await limiter.consume('modest')
    await limiter.consume('dear', { cost: 4 })
    return { metrics, limiter }
  }

  it('ranks by asked, denied and cost, by digest, and in clear text only with reveal', async () => {
    const { metrics } = await busy()
    const asked = metrics.topKeys({ policy: 'api' })
    expect(asked).toMatchObject({ scope: 'process', total: 24, floor: 0 })
    expect(asked?.keys).toEqual([
      { digest: digestOf('greedy', {}), name: 'name of greedy', count: 20, error: 0 },
      { digest: digestOf('modest', {}), name: 'name of modest', count: 3, error: 0 },
      { digest: digestOf('dear', {}), name: 'name of dear', count: 1, error: 0 },
    ])
    const names = (by: 'denied' | 'cost') =>
      metrics.topKeys({ policy: 'api', by, most: 2 })?.keys.map(({ name, count }) => [name, count])
    expect(names('denied')).toEqual([['name of greedy', 15]])
    expect(names('cost')).toEqual([
      ['name of greedy', 20],
      ['name of dear', 4],
    ])
    expect(metrics.topKeys({ policy: 'unknown' })).toBeUndefined()
  })

  it('looks back over a minute, ten, or an hour', async () => {
    const { metrics, limiter } = await busy()
    const total = (window: '1m' | '10m' | '1h') => metrics.topKeys({ policy: 'api', window })?.total
    vi.advanceTimersByTime(5 * 60_000)
    await limiter.consume('late')
    expect([total('1m'), total('10m'), total('1h')]).toEqual([1, 25, 25])
    vi.advanceTimersByTime(30 * 60_000)
    await limiter.consume('late')
    expect([total('1m'), total('10m'), total('1h')]).toEqual([1, 1, 26])
    vi.advanceTimersByTime(3 * 60 * 60_000)
    expect([total('1m'), total('10m'), total('1h')]).toEqual([0, 0, 0])
  })

  it('reports the maximum error of counts, also with costs', async () => {
    const { metrics, limiter } = limited()
    for (let i = 0; i < 2_000; i += 1) await limiter.consume(`user-${i}`)
    await limiter.consume('dear', { cost: 5 })
    const [dear, next] = metrics.topKeys({ policy: 'api', by: 'cost', most: 100 })?.keys ?? []
    expect(dear).toMatchObject({ count: 6, error: 1 })
    expect(next).toMatchObject({ count: 2, error: 1 })
  })

  it('reports the start of counting, also after a long pause', async () => {
    const { metrics, limiter } = await busy()
    expect(metrics.topKeys({ policy: 'api', window: '1h' })?.sinceMs).toBe(Date.now())
    vi.advanceTimersByTime(3 * 60 * 60_000)
    await limiter.consume('late')
    const minutesBack = (window: '1m' | '10m' | '1h') =>
      (Date.now() - (metrics.topKeys({ policy: 'api', window })?.sinceMs ?? 0)) / 60_000
    expect(minutesBack('1m')).toBe(1)
    expect(minutesBack('10m')).toBe(10)
    expect(minutesBack('1h')).toBe(60)
  })

  it('reveals the resolved key, not the place of a private policy', () => {
    const reveal = vi.fn((key: string) => key.toUpperCase())
    const metrics = collectMetrics({ reveal })
    const options = { limit: 9, window: '1m', observers: [metrics], key: () => 'me' } as const
    const guard = guardOf({ ...options, routes: { '/login': { limit: 5, window: '1m' } } })
    guard.check(exchange({}, '/admin'))
    guard.check(exchange({ path: '/login' }))
    const nameOf = (policy: string) => metrics.topKeys({ policy })?.keys[0]?.name
    expect(['default-9-60s', 'default-5-60s'].map(nameOf)).toEqual(['ME', 'ME'])
    expect(reveal.mock.calls.flat()).toEqual(['me', 'me'])
  })

  it('keeps only the digest of an identity of more than 64 characters', async () => {
    const reveal = vi.fn((key: string) => key)
    const { metrics, limiter } = limited({}, { reveal })
    const long = 'x'.repeat(65)
    for (let i = 0; i < 2; i += 1) await limiter.consume(long)
    expect(metrics.topKeys({ policy: 'api' })?.keys).toEqual([
      { digest: digestOf(long, {}), name: undefined, count: 2, error: 0 },
    ])
    expect(reveal).not.toHaveBeenCalled()
  })

  it('follows policies in shadow too', async () => {
    const { metrics, limiter } = limited({ name: 'soft', limit: 1, mode: 'shadow' })
    for (let i = 0; i < 3; i += 1) await limiter.consume('a')
    const count = (by: 'asked' | 'denied') => metrics.topKeys({ policy: 'soft', by })?.total
    expect([count('asked'), count('denied')]).toEqual([3, 2])
  })

  it.each([
    [{ policy: 'api', by: 'name' }, /by must be/],
    [{ policy: 'api', window: '2m' }, /window must be/],
    [{ policy: 'api', most: 0 }, /most must be/],
    [{ policy: 'api', size: 1 }, /size/],
  ])('refuses %j', (options, message) => {
    const { topKeys } = collectMetrics()
    expect(() => Reflect.apply(topKeys, undefined, [options])).toThrow(message)
  })
})
