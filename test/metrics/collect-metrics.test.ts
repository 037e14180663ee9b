import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLimiter, digestOf, memoryStore } from '@sluice/core'
import { collectMetrics, type Metrics, metricsPage } from '@sluice/metrics'
import { createOutbound } from '@sluice/outbound'
import { createQueue, createWorker, memoryBroker } from '@sluice/queue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { exchange, guardOf } from '../http/exchange.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: 1_795_195_800_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

/** The page as Prometheus reads it. */
async function scraped(metrics: Metrics, accept = 'text/plain'): Promise<string> {
  const response = await metricsPage(metrics)({
    method: 'GET',
    path: '/',
    route: undefined,
    ip: undefined,
    header: () => accept,
    native: {},
    query: new URLSearchParams(),
  })
  return String(response?.body)
}

/** The value of one series on the page. */
async function seriesValue(metrics: Metrics, series: string): Promise<number | undefined> {
  const lines = (await scraped(metrics)).split('\n')
  const line = lines.find((each) => each.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

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
    const info = 'sluice_policy_info{policy="soft",mode="shadow",algorithm="sliding-log"}'
    expect(await seriesValue(metrics, info)).toBe(1)
  })

  it.each([
    ['open', 'failed_open'],
    ['closed', 'failed_closed'],
  ] as const)('tell of requests that the failure mode %s decides', async (failureMode, result) => {
    const metrics = collectMetrics()
    const store = { apply: () => Promise.reject(new Error('gone')) }
    const options = { failureMode, store, observers: [metrics], onStoreError: () => undefined }
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
    expect(page).toContain('sluice_policy_info{policy="ban",mode="enforce",algorithm="penalty"} 1')
    expect(page).not.toContain('sluice_used_ratio_count{policy="ban"}')
    expect(page).not.toContain('sluice_hot_key_share{policy="ban"}')
    expect(metrics.topKeys({ policy: 'ban', by: 'denied' })?.total).toBe(1)
  })

  it('call a policy without a name by its shape', async () => {
    const metrics = collectMetrics()
    createLimiter({ limit: 5, window: '15m', observers: [metrics] })
    expect(await seriesValue(metrics, 'sluice_policy_limit{policy="default-5-900s"}')).toBe(5)
  })
})

describe('the bounds of metrics', () => {
  it('have 200 routes and 2,000 series at most, and count what becomes other', async () => {
    const metrics = collectMetrics()
    const limiter = createLimiter({ name: 'api', limit: 1, window: '1m' })
    const decision = await limiter.consume('a')
    const event = { decision, checks: [], request: undefined, policy: undefined, key: undefined }
    const rest = { digest: undefined, answeredBy: 'memory', durationMs: 1, isQueued: false }
    for (let i = 0; i < 5_000; i += 1) {
      metrics.onDecision({ ...event, ...rest, route: `/made-up/${i}` })
      metrics.onEvent({ type: 'done', queue: `queue-${i}`, runMs: 1 })
    }
    const families = await metrics.read()
    const sizes = families.map(({ name, samples }) => [name, samples.length] as const)
    expect(Math.max(...sizes.map(([, size]) => size))).toBe(2_000)
    expect(new Map(sizes).get('sluice_requests_total')).toBe(201)
    expect(await seriesValue(metrics, 'sluice_series_overflow_total{metric="route"}')).toBe(4_800)
    expect(await seriesValue(metrics, 'sluice_jobs_total{queue="other",event="other"}')).toBe(3_001)
    expect(
      await seriesValue(metrics, 'sluice_series_overflow_total{metric="sluice_jobs_total"}'),
    ).toBe(3_001)
  })

  it('let limiters go that nobody uses any more', async () => {
    vi.useRealTimers()
    setFlagsFromString('--expose-gc')
    const collectGarbage: () => void = runInNewContext('gc')
    const metrics = collectMetrics()
    const kept = createLimiter({ name: 'kept', limit: 1, window: '1m', observers: [metrics] })
    const refs = Array.from({ length: 20 }, () => {
      const options = { name: 'tenant', limit: 1, window: '1m', observers: [metrics] } as const
      return new WeakRef(createLimiter(options).store)
    })
    for (let i = 0; i < 5; i += 1) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      collectGarbage()
    }
    expect(refs.filter((ref) => ref.deref() !== undefined)).toEqual([])
    expect(kept.store).toBeDefined()
    expect(await seriesValue(metrics, 'sluice_fallback_active')).toBe(0)
  })

  it('leave no identity in what is read', async () => {
    const metrics = collectMetrics()
    const observers = [metrics]
    const limiter = createLimiter({ name: 'api', limit: 1, window: '1m', observers })
    for (let i = 0; i < 3; i += 1) await limiter.consume('canary@example.com')
    const outbound = createOutbound({
      name: 'crm',
      limits: [{ limit: 5, window: '1s' }],
      observers,
    })
    await outbound.schedule(async () => 1, { label: 'canary' })
    const output = [
      await scraped(metrics),
      await scraped(metrics, 'application/openmetrics-text'),
      JSON.stringify(metrics.topKeys({ policy: 'api' })),
    ]
    expect(output.join('\n')).not.toMatch(/canary/)
    expect(output[0]).toContain('sluice_outbound_calls_total{outbound="crm",answer="ok"} 1')
  })
})

describe('topKeys', () => {
  async function busy() {
    const store = memoryStore()
    const metrics = collectMetrics({ store, reveal: (key) => `name of ${key}` })
    const limiter = createLimiter({
      name: 'api',
      limit: 5,
      window: '1m',
      store,
      observers: [metrics],
    })
    for (let i = 0; i < 20; i += 1) await limiter.consume('greedy')
    for (let i = 0; i < 3; i += 1) await limiter.consume('modest')
    await limiter.consume('dear', { cost: 4 })
    return { metrics, limiter }
  }

  it('ranks by asked, denied and cost, with digests, and in clear only through reveal', async () => {
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

  it('says how far counts may be off, also once requests have costs', async () => {
    const metrics = collectMetrics()
    const limiter = createLimiter({ name: 'api', limit: 9, window: '1m', observers: [metrics] })
    for (let i = 0; i < 1_500; i += 1) await limiter.consume(`user-${i}`)
    await limiter.consume('dear', { cost: 5 })
    const [dear, next] = metrics.topKeys({ policy: 'api', by: 'cost', most: 100 })?.keys ?? []
    expect(dear).toMatchObject({ count: 6, error: 1 })
    expect(next).toMatchObject({ count: 2, error: 1 })
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

describe('metrics of queues and outbounds', () => {
  it('tell depth, dead letters, waits, runs and retries', async () => {
    const metrics = collectMetrics()
    const broker = memoryBroker()
    const queue = createQueue({ broker, observers: [metrics] })
    await queue.enqueue({ identity: 'a', payload: 1 })
    vi.advanceTimersByTime(2_000)
    const name = broker.name
    const read = (series: string) => seriesValue(metrics, `${series}{queue="${name}"}`)
    expect(await read('sluice_queue_depth')).toBe(1)
    expect(await read('sluice_queue_oldest_seconds')).toBe(2)
    const handler = vi.fn(async () => Promise.reject(new Error('no')))
    const worker = createWorker({ broker, handler, attempts: 2, observers: [metrics] })
    await vi.advanceTimersByTimeAsync(20_000)
    await worker.close()
    const jobs = (event: string) =>
      seriesValue(metrics, `sluice_jobs_total{queue="${name}",event="${event}"}`)
    expect([await jobs('enqueued'), await jobs('retried'), await jobs('dead')]).toEqual([1, 1, 1])
    expect(await read('sluice_queue_dead_letters')).toBe(1)
    expect(await read('sluice_job_run_seconds_count')).toBe(2)
    expect(await read('sluice_job_wait_seconds_count')).toBe(2)
  })

  it('show what alerts wait for at 0 before it happens, so that its first event is an increase', async () => {
    const metrics = collectMetrics()
    metrics.onQueue({ queue: 'mail', depth: async () => ({ depth: 0, dead: 0, oldestMs: 0 }) })
    expect(await seriesValue(metrics, 'sluice_jobs_total{queue="mail",event="dead"}')).toBe(0)
    for (const metric of ['route', 'sluice_jobs_total', 'sluice_checks_total']) {
      const series = `sluice_series_overflow_total{metric="${metric}"}`
      expect(await seriesValue(metrics, series)).toBe(0)
    }
  })

  it('leave a queue out that does not say how full it is', async () => {
    const metrics = collectMetrics()
    metrics.onQueue({ queue: 'away', depth: () => Promise.reject(new Error('gone')) })
    metrics.onQueue({
      queue: 'broken',
      depth: () => {
        throw new Error('gone')
      },
    })
    metrics.onQueue({ queue: 'hangs', depth: () => new Promise(() => undefined) })
    const page = scraped(metrics)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await page).not.toContain('sluice_queue_depth{')
  })
})

describe('the page', () => {
  it('writes OpenMetrics for whoever accepts it, and escapes labels', async () => {
    const metrics = collectMetrics()
    metrics.onEvent({ type: 'done', queue: 'a"b\\c\nd' })
    const text = await scraped(metrics, 'application/openmetrics-text;version=1.0.0,text/plain')
    expect(text).toContain('# TYPE sluice_jobs counter\n')
    expect(text).toContain('sluice_jobs_total{queue="a\\"b\\\\c\\nd",event="done"} 1\n')
    expect(text.endsWith('# EOF\n')).toBe(true)
  })

  it('answers GET and HEAD at its mount alone', async () => {
    const page = metricsPage(collectMetrics())
    const request = { route: undefined, ip: undefined, header: () => undefined, native: {} }
    const asked = { ...request, query: new URLSearchParams() }
    expect(await page({ ...asked, method: 'POST', path: '/' })).toMatchObject({ status: 405 })
    expect(await page({ ...asked, method: 'GET', path: '/more' })).toBeUndefined()
    expect(await page({ ...asked, method: 'HEAD', path: '/' })).toMatchObject({
      status: 200,
      headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
    })
  })
})

it.each([
  [{ store: 'redis' }, /store must be a store/],
  [{ reveal: 1 }, /reveal must be a function/],
  [{ registry: {} }, /registry/],
])('collectMetrics refuses %j', (options, message) => {
  expect(() => Reflect.apply(collectMetrics, undefined, [options])).toThrow(message)
})
