import { createLimiter, type DecisionEvent, memoryStore } from '@sluice/core'
import { collectMetrics, type Family, type Metrics } from '@sluice/metrics'
import { describe, expect, it } from 'vitest'
import { exchange, guardOf } from '../http/exchange.ts'
import { goneStore } from '../support/store-through.ts'
import { fakeTime, scraped, seriesValue } from './scrape.ts'

fakeTime()

describe('metrics of a guard', () => {
  it('count requests by route, method class and result', async () => {
    const metrics = collectMetrics()
    const guard = guardOf({
      ...{ name: 'all', limit: 2, window: '1m', observers: [metrics] },
      routes: { '/health': false },
    })
    for (let i = 0; i < 3; i += 1) await guard.check(exchange({ route: '/items/:id' }))
    await guard.check(exchange({ method: 'POST', route: '/items/:id' }))
    await guard.check(exchange({ path: '/health' }))
    const requests = (labels: string) => seriesValue(metrics, `sluice_requests_total{${labels}}`)
    const read = 'route="GET /items/:id",method_class="read"'
    expect(await requests(`${read},result="allowed"`)).toBe(2)
    expect(await requests(`${read},result="denied"`)).toBe(1)
    expect(await requests('route="POST /items/:id",method_class="write",result="denied"')).toBe(1)
    expect(await requests('route="/health",method_class="read",result="skipped"')).toBe(1)
    expect(
      await seriesValue(metrics, 'sluice_denials_total{policy="all",route="GET /items/:id"}'),
    ).toBe(1)
    expect(await seriesValue(metrics, 'sluice_checks_total{policy="all",result="denied"}')).toBe(2)
  })

  it('tell what a policy in shadow would have done beside what is enforced', async () => {
    const metrics = collectMetrics()
    const guard = guardOf({
      policies: [
        { name: 'hard', limit: 10, window: '1m' },
        { name: 'soft', limit: 1, window: '1m', mode: 'shadow' },
      ],
      observers: [metrics],
    })
    for (let i = 0; i < 3; i += 1) await guard.check(exchange())
    const line = 'route="unmatched",method_class="read"'
    expect(await seriesValue(metrics, `sluice_requests_total{${line},result="allowed"}`)).toBe(1)
    expect(
      await seriesValue(metrics, `sluice_requests_total{${line},result="shadow_denied"}`),
    ).toBe(2)
    expect(
      await seriesValue(metrics, 'sluice_checks_total{policy="soft",result="shadow_denied"}'),
    ).toBe(2)
    expect(await seriesValue(metrics, 'sluice_checks_total{policy="hard",result="allowed"}')).toBe(
      3,
    )
    const info =
      'sluice_policy_info{policy="soft",mode="shadow",algorithm="sliding-log",version="code"}'
    expect(await seriesValue(metrics, info)).toBe(1)
  })

  it.each([
    ['open', 'failed_open'],
    ['closed', 'failed_closed'],
  ] as const)('tell of requests that the failure mode %s decides', async (failureMode, result) => {
    const metrics = collectMetrics()
    const store = goneStore(memoryStore())
    const options = { failureMode, store, observers: [metrics, { onStoreError: () => undefined }] }
    const guard = guardOf({ limit: 1, window: '1m', ...options })
    for (let i = 0; i < 4; i += 1) await guard.check(exchange())
    const series = `sluice_requests_total{route="unmatched",method_class="read",result="${result}"}`
    expect(await seriesValue(metrics, series)).toBe(4)
    expect(await seriesValue(metrics, 'sluice_fallback_active')).toBe(1)
    expect(await seriesValue(metrics, 'sluice_breaker_state')).toBe(2)
  })
})

describe('metrics of a limiter', () => {
  it('show near misses at any threshold, and describe each policy before its first request', async () => {
    const metrics = collectMetrics()
    const limiter = createLimiter({ name: 'api', limit: 10, window: '1m', observers: [metrics] })
    expect(await seriesValue(metrics, 'sluice_policy_limit{policy="api"}')).toBe(10)
    expect(await seriesValue(metrics, 'sluice_policy_window_seconds{policy="api"}')).toBe(60)
    for (let i = 0; i < 11; i += 1) await limiter.consume('a')
    const bucket = (le: string) =>
      seriesValue(metrics, `sluice_used_ratio_bucket{policy="api",le="${le}"}`)
    expect(await bucket('0.5')).toBe(5)
    expect(await bucket('0.8')).toBe(8)
    expect(await bucket('0.95')).toBe(9)
    expect(await bucket('+Inf')).toBe(10)
    expect(await seriesValue(metrics, 'sluice_decision_seconds_count{answered_by="memory"}')).toBe(
      11,
    )
  })

  it('count near misses of a bucket by what it holds, and not by its refill', async () => {
    const metrics = collectMetrics()
    const bucket = { algorithm: 'token-bucket', window: '1h', burst: 10 } as const
    const policy = { name: 'api', limit: 15, ...bucket } as const
    const limiter = createLimiter({ policies: [policy], observers: [metrics] })
    for (let i = 0; i < 10; i += 1) await limiter.consume('a')
    const series = 'sluice_used_ratio_bucket{policy="api",le="0.5"}'
    expect(await seriesValue(metrics, series)).toBe(5)
  })

  it('have the series of a first denial before it comes, and no skew of clocks at first', async () => {
    const metrics = collectMetrics()
    const penalty = { name: 'ban', after: 'never' } as const
    const soft = { name: 'soft', limit: 1, window: '1m', mode: 'shadow' } as const
    const policies = [{ name: 'hard', limit: 1, window: '1m' }, soft] as const
    createLimiter({ policies, penalty, observers: [metrics] })
    const checks = (policy: string, result: string) =>
      seriesValue(metrics, `sluice_checks_total{policy="${policy}",result="${result}"}`)
    expect(await checks('hard', 'denied')).toBe(0)
    expect(await checks('soft', 'shadow_denied')).toBe(0)
    expect(await seriesValue(metrics, 'sluice_penalties_total{policy="ban"}')).toBe(0)
    expect(await seriesValue(metrics, 'sluice_clock_skew_seconds')).toBe(0)
  })

  it.each([1, 127, 128, 300])(
    'have counted all of %i decisions whatever is read',
    async (count) => {
      const ofPage = 'sluice_checks_total{policy="api",result="allowed"}'
      const checks = (families: readonly Family[]) =>
        families
          .find(({ name }) => name === 'sluice_checks_total')
          ?.samples.find(({ labels }) => labels.includes('allowed'))?.value
      const readings: Readonly<Record<string, (metrics: Metrics) => unknown>> = {
        page: (metrics) => seriesValue(metrics, ofPage),
        read: async (metrics) => checks(await metrics.read()),
        snapshot: (metrics) => checks(metrics.snapshot()),
        fleetSnapshot: (metrics) => checks(metrics.fleetSnapshot().families),
        topKeys: (metrics) => metrics.topKeys({ policy: 'api' })?.total,
      }
      for (const [name, read] of Object.entries(readings)) {
        const metrics = collectMetrics()
        const limiter = createLimiter({
          name: 'api',
          limit: 1e6,
          window: '1m',
          observers: [metrics],
        })
        for (let i = 0; i < count; i += 1) await limiter.consume('a')
        expect([name, await read(metrics)]).toEqual([name, count])
      }
    },
  )

  it('count through a function of the user that passes some of the events on', async () => {
    const metrics = collectMetrics()
    const some = {
      ...metrics,
      onDecision: (event: DecisionEvent) => {
        if (event.key !== 'probe') metrics.onDecision(event)
      },
    }
    const limiter = createLimiter({ name: 'api', limit: 9, window: '1m', observers: [some] })
    for (const key of ['a', 'probe', 'b']) await limiter.consume(key)
    const checks = await seriesValue(metrics, 'sluice_checks_total{policy="api",result="allowed"}')
    expect(checks).toBe(2)
  })

  it('count each decision once beside observers of events and other metrics', async () => {
    const all = [collectMetrics(), collectMetrics()]
    const keys: unknown[] = []
    const limiter = createLimiter({
      policies: [
        { name: 'api', limit: 1, window: '1m' },
        { name: 'trial', limit: 1, window: '1m', mode: 'shadow' },
      ],
      observers: [...all, { onDecision: ({ key }) => void keys.push(key) }],
    })
    for (const key of ['a', 'a', 'b']) await limiter.consume(key)
    expect(keys).toEqual(['a', 'a', 'b'])
    for (const metrics of all) {
      expect(await checksBy(metrics)).toEqual({
        'api allowed': 2,
        'api denied': 1,
        'trial shadow_allowed': 2,
        'trial shadow_denied': 0,
      })
      expect(metrics.topKeys({ policy: 'api', by: 'denied' })?.total).toBe(1)
    }
  })

  it('tell a tap of each decision at once', async () => {
    const metrics = collectMetrics()
    const limiter = createLimiter({ name: 'api', limit: 4, window: '1m', observers: [metrics] })
    await limiter.consume('a')
    const heard: unknown[] = []
    metrics.tap('sluice_used_ratio', (value, labels) => heard.push([value, ...labels]))
    await limiter.consume('a')
    await limiter.consume('a')
    expect(heard).toEqual([
      [0.5, 'api'],
      [0.75, 'api'],
    ])
  })

  it('are read although the store fails to make a digest, which is a warning', async () => {
    const digestOf = (): string => {
      throw new Error('no digest')
    }
    const metrics = collectMetrics({ store: { keys: { digestOf } } })
    const limiter = createLimiter({ name: 'api', limit: 9, window: '1m', observers: [metrics] })
    await limiter.consume('x'.repeat(65))
    await limiter.consume('a')
    expect(
      await seriesValue(
        metrics,
        'sluice_requests_total{route="unmatched",method_class="none",result="allowed"}',
      ),
    ).toBe(2)
  })

  it('tell the share of the busiest identity without naming it', async () => {
    const metrics = collectMetrics()
    const limiter = createLimiter({ name: 'api', limit: 1_000, window: '1m', observers: [metrics] })
    for (let i = 0; i < 10; i += 1) await limiter.consume(i < 6 ? 'greedy' : `user-${i}`)
    expect(await seriesValue(metrics, 'sluice_hot_key_share{policy="api"}')).toBeCloseTo(0.6)
  })

  it('tell requests that a penalty denies', async () => {
    const metrics = collectMetrics()
    const penalty = { name: 'ban', after: 'never' } as const
    const limiter = createLimiter({ limit: 9, window: '1m', penalty, observers: [metrics] })
    await limiter.block('a', '1m')
    await limiter.consume('a')
    expect(await seriesValue(metrics, 'sluice_penalties_total{policy="ban"}')).toBe(1)
    const page = await scraped(metrics)
    expect(page).toContain(
      'sluice_policy_info{policy="ban",mode="enforce",algorithm="penalty",version="code"} 1',
    )
    expect(page).not.toContain('sluice_used_ratio_count{policy="ban"}')
    expect(page).not.toContain('sluice_hot_key_share{policy="ban"}')
    expect(metrics.topKeys({ policy: 'ban', by: 'denied' })?.total).toBe(1)
  })

  it('tell the skew of the clocks as it is, so that a repaired one is seen', async () => {
    const metrics = collectMetrics()
    const skewed = { ...memoryStore(), fleet: { instances: 1, clockSkewMs: -1_200 } }
    createLimiter({ limit: 1, window: '1m', store: skewed, observers: [metrics] })
    createLimiter({ limit: 1, window: '1m', observers: [metrics] })
    expect(await seriesValue(metrics, 'sluice_clock_skew_seconds')).toBe(-1.2)
    skewed.fleet.clockSkewMs = 300
    expect(await seriesValue(metrics, 'sluice_clock_skew_seconds')).toBe(0.3)
  })

  it('call a policy without a name by its shape', async () => {
    const metrics = collectMetrics()
    createLimiter({ limit: 5, window: '15m', observers: [metrics] })
    expect(await seriesValue(metrics, 'sluice_policy_limit{policy="default-5-900s"}')).toBe(5)
  })
})

it.each([
  [{ store: 'redis' }, /store must be a store/],
  [{ reveal: 1 }, /reveal must be a function/],
  [{ registry: {} }, /registry/],
])('collectMetrics refuses %j', (options, message) => {
  expect(() => Reflect.apply(collectMetrics, undefined, [options])).toThrow(message)
})

async function checksBy(metrics: Metrics): Promise<Record<string, number>> {
  const families = await metrics.read()
  const checks = families.find(({ name }) => name === 'sluice_checks_total')
  return Object.fromEntries(
    checks?.samples.map(({ labels, value }) => [labels.join(' '), value]) ?? [],
  )
}
