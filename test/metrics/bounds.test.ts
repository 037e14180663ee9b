import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLimiter } from '@sluice/core'
import { collectMetrics } from '@sluice/metrics'
import { describe, expect, it, vi } from 'vitest'
import { exchange, guardOf } from '../http/exchange.ts'
import { expectSeries, fakeTime, seriesValue } from './scrape.ts'

fakeTime()

describe('the bounds of metrics', () => {
  it('have at most 200 routes and 2,000 series, and count overflow as other', async () => {
    const metrics = collectMetrics()
    const guard = guardOf({ name: 'api', limit: 5_000, window: '1m', observers: [metrics] })
    for (let i = 0; i < 5_000; i += 1) {
      await guard.check(exchange({ route: `/made-up/${i}` }))
      metrics.onEvent({ type: 'done', queue: `queue-${i}`, runMs: 1 })
    }
    const families = await metrics.read()
    const sizes = families.map(({ name, samples }) => [name, samples.length] as const)
    expect(Math.max(...sizes.map(([, size]) => size))).toBe(1_901)
    expect(new Map(sizes).get('sluice_requests_total')).toBe(201)
    await expectSeries(metrics, {
      'sluice_series_overflow_total{metric="route"}': 4_800,
      'sluice_jobs_total{queue="other",event="done"}': 3_100,
      'sluice_series_overflow_total{metric="sluice_jobs_total"}': 3_100,
    })
  })

  it('keep the labels of a full table that are known, and 2,000 series whatever comes', async () => {
    const metrics = collectMetrics()
    const jobs = (queue: string, event: string) =>
      seriesValue(metrics, `sluice_jobs_total{queue="${queue}",event="${event}"}`)
    for (let i = 0; i < 1_900; i += 1) metrics.onEvent({ type: 'enqueued', queue: `queue-${i}` })
    metrics.onEvent({ type: 'dead', queue: 'queue-0' })
    metrics.onEvent({ type: 'dead', queue: 'new' })
    expect(await jobs('queue-0', 'dead')).toBe(1)
    expect(await jobs('other', 'dead')).toBe(1)
    for (let i = 0; i < 1_900; i += 1) {
      for (const type of ['done', 'dead']) metrics.onEvent({ type, queue: `queue-${i}` })
    }
    expect(await jobs('other', 'done')).toBeGreaterThan(1_800)
    for (let i = 0; i < 500; i += 1) metrics.onEvent({ type: `made-up-${i}`, queue: 'new' })
    const sizes = (await metrics.read()).map(({ samples }) => samples.length)
    expect(Math.max(...sizes)).toBe(2_000)
    expect(await jobs('other', 'other')).toBeGreaterThan(400)
  })

  it('count a denied request of a route too many once', async () => {
    const metrics = collectMetrics()
    const guard = guardOf({ name: 'api', limit: 0, window: '1m', observers: [metrics] })
    for (let i = 0; i < 202; i += 1) await guard.check(exchange({ route: `/made-up/${i}` }))
    await expectSeries(metrics, {
      'sluice_series_overflow_total{metric="route"}': 2,
      'sluice_denials_total{policy="api",route="other"}': 2,
    })
  })

  it('describe one policy too many, without following its keys', async () => {
    const metrics = collectMetrics()
    const limiters = Array.from({ length: 102 }, (_, i) =>
      createLimiter({ name: `p${i}`, limit: 5, window: '1m', observers: [metrics] }),
    )
    for (const limiter of limiters) await limiter.consume('a')
    await expectSeries(metrics, {
      'sluice_policy_info{policy="p101",mode="enforce",algorithm="sliding-log",version="code"}': 1,
      'sluice_policy_limit{policy="p101"}': 5,
    })
    expect(metrics.topKeys({ policy: 'p99' })?.total).toBe(1)
    expect(metrics.topKeys({ policy: 'p100' })).toBeUndefined()
  })

  it('release unused limiters', async () => {
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
    await expectSeries(metrics, { sluice_fallback_active: 0 })
  })
})
