import { createLimiter, type DecisionEvent, memoryStore } from '@sluice/core'
import { collectMetrics, type Family, type Metrics } from '@sluice/metrics'
import { describe, expect, it } from 'vitest'
import { exchange, guardOf } from '../http/exchange.ts'
import { goneStore } from '../support/store-through.ts'
import { expectSeries, fakeTime, limited, seriesValue } from './scrape.ts'

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
    const requests = 'sluice_requests_total'
    const read = `${requests}{route="GET /items/:id",method_class="read"`
    await expectSeries(metrics, {
      [`${read},result="allowed"}`]: 2,
      [`${read},result="denied"}`]: 1,
      [`${requests}{route="POST /items/:id",method_class="write",result="denied"}`]: 1,
      [`${requests}{route="/health",method_class="read",result="skipped"}`]: 1,
      'sluice_denials_total{policy="all",route="GET /items/:id"}': 1,
      'sluice_checks_total{policy="all",result="denied"}': 2,
    })
  })

  it('report shadow results next to enforced ones', async () => {
    const metrics = collectMetrics()
    const soft = { name: 'soft', limit: 1, window: '1m', mode: 'shadow' } as const
    const policies = [{ name: 'hard', limit: 10, window: '1m' } as const, soft]
    const guard = guardOf({ policies, observers: [metrics] })
    for (let i = 0; i < 3; i += 1) await guard.check(exchange())
    const line = 'sluice_requests_total{route="unmatched",method_class="read"'
    await expectSeries(metrics, {
      [`${line},result="allowed"}`]: 1,
      [`${line},result="shadow_denied"}`]: 2,
      'sluice_checks_total{policy="soft",result="shadow_denied"}': 2,
      'sluice_checks_total{policy="hard",result="allowed"}': 3,
      'sluice_policy_info{policy="soft",mode="shadow",algorithm="sliding-log",version="code"}': 1,
    })
  })

  it.each([
    ['open', 'failed_open'],
    ['closed', 'failed_closed'],
  ] as const)('report requests decided by failure mode %s', async (failureMode, result) => {
    const metrics = collectMetrics()
    const store = goneStore(memoryStore())
    const options = { failureMode, store, observers: [metrics, { onStoreError: () => undefined }] }
    const guard = guardOf({ limit: 1, window: '1m', ...options })
    for (let i = 0; i < 4; i += 1) await guard.check(exchange())
    await expectSeries(metrics, {
      [`sluice_requests_total{route="unmatched",method_class="read",result="${result}"}`]: 4,
      sluice_fallback_active: 1,
      sluice_breaker_state: 2,
    })
  })
})

describe('metrics of a limiter', () => {
  it('show near misses at any threshold, and describe each policy before its first request', async () => {
    const { metrics, limiter } = limited({ limit: 10 })
    await expectSeries(metrics, {
      'sluice_policy_limit{policy="api"}': 10,
      'sluice_policy_window_seconds{policy="api"}': 60,
    })
    for (let i = 0; i < 11; i += 1) await limiter.consume('a')
    await expectSeries(metrics, {
      'sluice_used_ratio_bucket{policy="api",le="0.5"}': 5,
      'sluice_used_ratio_bucket{policy="api",le="0.8"}': 8,
      'sluice_used_ratio_bucket{policy="api",le="0.95"}': 9,
      'sluice_used_ratio_bucket{policy="api",le="+Inf"}': 10,
      'sluice_decision_seconds_count{answered_by="memory"}': 11,
    })
  })

  it('count near misses of a bucket by what it holds, and not by its refill', async () => {
    const bucket = { algorithm: 'token-bucket', window: '1h', burst: 10 } as const
    const { metrics, limiter } = limited({ limit: 15, ...bucket })
    for (let i = 0; i < 10; i += 1) await limiter.consume('a')
    await expectSeries(metrics, { 'sluice_used_ratio_bucket{policy="api",le="0.5"}': 5 })
  })

  it('have the series of a first denial before it comes, and no skew of clocks at first', async () => {
    const penalty = { name: 'ban', after: 'never' } as const
    const soft = { name: 'soft', limit: 1, window: '1m', mode: 'shadow' } as const
    const policies = [{ name: 'hard', limit: 1, window: '1m' } as const, soft]
    const { metrics } = limited({ policies, penalty })
    await expectSeries(metrics, {
      'sluice_checks_total{policy="hard",result="denied"}': 0,
      'sluice_checks_total{policy="soft",result="shadow_denied"}': 0,
      'sluice_penalties_total{policy="ban"}': 0,
      sluice_clock_skew_seconds: 0,
    })
  })

  it.each([1, 127, 128, 300])('count all of %i decisions, regardless of reads', async (count) => {
    const ofPage = 'sluice_checks_total{policy="api",result="allowed"}'
    const checks = (families: readonly Family[]) => checksIn(families)['api allowed']
    const readings: Readonly<Record<string, (metrics: Metrics) => unknown>> = {
      page: (metrics) => seriesValue(metrics, ofPage),
      read: async (metrics) => checks(await metrics.read()),
      snapshot: (metrics) => checks(metrics.snapshot()),
      fleetSnapshot: (metrics) => checks(metrics.fleetSnapshot().families),
      topKeys: (metrics) => metrics.topKeys({ policy: 'api' })?.total,
    }
    for (const [name, read] of Object.entries(readings)) {
      const { metrics, limiter } = limited({ limit: 1e6 })
      for (let i = 0; i < count; i += 1) await limiter.consume('a')
      expect([name, await read(metrics)]).toEqual([name, count])
    }
  })

  it('count through a function of the user that passes some of the events on', async () => {
    const metrics = collectMetrics()
    const onDecision = (event: DecisionEvent) => {
      if (event.key !== 'probe') metrics.onDecision(event)
    }
    const { limiter } = limited({ observers: [{ ...metrics, onDecision }] })
    for (const key of ['a', 'probe', 'b']) await limiter.consume(key)
    await expectSeries(metrics, { 'sluice_checks_total{policy="api",result="allowed"}': 2 })
  })

  it('count each decision once beside observers of events and other metrics', async () => {
    const all = [collectMetrics(), collectMetrics()]
    const keys: unknown[] = []
    const { limiter } = limited({
      policies: [
        { name: 'api', limit: 1, window: '1m' },
        { name: 'trial', limit: 1, window: '1m', mode: 'shadow' },
      ],
      observers: [...all, { onDecision: ({ key }: DecisionEvent) => void keys.push(key) }],
    })
    for (const key of ['a', 'a', 'b']) await limiter.consume(key)
    expect(keys).toEqual(['a', 'a', 'b'])
    for (const metrics of all) {
      expect(checksIn(await metrics.read())).toEqual({
        'api allowed': 2,
        'api denied': 1,
        'trial shadow_allowed': 2,
        'trial shadow_denied': 0,
      })
      expect(metrics.topKeys({ policy: 'api', by: 'denied' })?.total).toBe(1)
    }
  })

  it('notify a tap of each decision immediately', async () => {
    const { metrics, limiter } = limited({ limit: 4 })
    await limiter.consume('a')
    const heard: unknown[] = []
    metrics.tap('sluice_used_ratio', (value, labels) => heard.push([value, ...labels]))
    await limiter.consume('a')
    await limiter.consume('a')
    expect(heard.flat()).toEqual([0.5, 'api', 0.75, 'api'])
  })

  it('are readable although the store fails to compute a digest, which is a warning', async () => {
    const digestOf = (): string => {
      throw new Error('no digest')
    }
    const { metrics, limiter } = limited({}, { store: { keys: { digestOf } } })
    await limiter.consume('x'.repeat(65))
    await limiter.consume('a')
    await expectSeries(metrics, {
      'sluice_requests_total{route="unmatched",method_class="none",result="allowed"}': 2,
    })
  })

  it('report the share of the busiest identity without naming it', async () => {
    const { metrics, limiter } = limited({ limit: 1_000 })
    for (let i = 0; i < 10; i += 1) await limiter.consume(i < 6 ? 'greedy' : `user-${i}`)
    expect(await seriesValue(metrics, 'sluice_hot_key_share{policy="api"}')).toBeCloseTo(0.6)
  })

  it('report requests denied by a penalty', async () => {
    const { metrics, limiter } = limited({ penalty: { name: 'ban', after: 'never' } })
    await limiter.block('a', '1m')
    await limiter.consume('a')
    await expectSeries(metrics, {
      'sluice_penalties_total{policy="ban"}': 1,
      'sluice_policy_info{policy="ban",mode="enforce",algorithm="penalty",version="code"}': 1,
      'sluice_used_ratio_count{policy="ban"}': undefined,
      'sluice_hot_key_share{policy="ban"}': undefined,
    })
    expect(metrics.topKeys({ policy: 'ban', by: 'denied' })?.total).toBe(1)
  })

  it('report the current clock skew, so that a repair is visible', async () => {
    const skewed = { ...memoryStore(), fleet: { instances: 1, clockSkewMs: -1_200 } }
    const { metrics } = limited({ store: skewed })
    createLimiter({ limit: 1, window: '1m', observers: [metrics] })
    await expectSeries(metrics, { sluice_clock_skew_seconds: -1.2 })
    skewed.fleet.clockSkewMs = 300
    await expectSeries(metrics, { sluice_clock_skew_seconds: 0.3 })
  })
})

it.each([
  [{ store: 'redis' }, /store must be a store/],
  [{ reveal: 1 }, /reveal must be a function/],
  [{ registry: {} }, /registry/],
])('collectMetrics refuses %j', (options, message) => {
  expect(() => Reflect.apply(collectMetrics, undefined, [options])).toThrow(message)
})

/** What `sluice_checks_total` counts, by policy and result. */
function checksIn(families: readonly Family[]): Record<string, number> {
  const { samples = [] } = families.find(({ name }) => name === 'sluice_checks_total') ?? {}
  return Object.fromEntries(samples.map(({ labels, value }) => [labels.join(' '), value]))
}
