import { collectMetrics } from '@sluice/metrics'
import { prometheus } from '@sluice/metrics/prometheus'
import { AggregatorRegistry, Counter, type OpenMetricsContentType, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { limited } from './scrape.ts'

async function denials() {
  const { metrics, limiter } = limited({ limit: 1 })
  for (let i = 0; i < 3; i += 1) await limiter.consume('a')
  return metrics
}

describe('prometheus() with prom-client 15', () => {
  it('writes counters, gauges and histograms as the registry does', async () => {
    const registry = new Registry()
    prometheus(await denials(), { registry })
    const text = await registry.metrics()
    for (const line of [
      '# TYPE sluice_checks_total counter',
      'sluice_checks_total{policy="api",result="denied"} 2',
      '# TYPE sluice_policy_limit gauge\nsluice_policy_limit{policy="api"} 1',
      'sluice_used_ratio_bucket{le="0.99",policy="api"} 0',
      'sluice_used_ratio_bucket{le="+Inf",policy="api"} 1',
      'sluice_used_ratio_count{policy="api"} 1',
    ]) {
      expect(text).toContain(`${line}\n`)
    }
  })

  it("reads current values at each scrape, alongside the application's metrics", async () => {
    const registry = new Registry()
    new Counter({ name: 'own_total', help: 'own', registers: [registry] }).inc()
    const metrics = collectMetrics()
    prometheus(metrics, { registry })
    await registry.metrics()
    const { limiter } = limited({ name: 'late', observers: [metrics] })
    await limiter.consume('a')
    const text = await registry.metrics()
    expect(text).toContain('own_total 1')
    expect(text).toContain('sluice_checks_total{policy="late",result="allowed"} 1')
  })

  it('writes the same names if the registry exports OpenMetrics, at each scrape', async () => {
    const registry = new Registry<OpenMetricsContentType>()
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
    prometheus(await denials(), { registry })
    for (let i = 0; i < 2; i += 1) {
      const text = await registry.metrics()
      expect(text).toContain('# TYPE sluice_checks counter\n')
      expect(text).toContain('sluice_checks_total{policy="api",result="denied"} 2\n')
      expect(text).toContain('sluice_used_ratio_count{policy="api"} 1\n')
    }
  })

  it('may be called twice for the same metrics, but not for others', async () => {
    const registry = new Registry()
    const metrics = await denials()
    prometheus(metrics, { registry })
    prometheus(metrics, { registry })
    const others = () => prometheus(collectMetrics(), { registry })
    expect(others).toThrow(/registry: it already has a metric sluice_requests_total, from/)
  })

  it('registers again after the registry was cleared', async () => {
    const registry = new Registry()
    const metrics = await denials()
    prometheus(metrics, { registry })
    registry.clear()
    prometheus(metrics, { registry })
    expect(await registry.metrics()).toContain('sluice_policy_limit{policy="api"} 1\n')
  })

  it('sums counters of a cluster, and takes the maximum of its gauges', async () => {
    const registry = new Registry()
    prometheus(await denials(), { registry })
    const page = await registry.getMetricsAsJSON()
    const text = await AggregatorRegistry.aggregate([page, page]).metrics()
    expect(text).toContain('sluice_checks_total{policy="api",result="denied"} 4\n')
    expect(text).toContain('sluice_policy_limit{policy="api"} 1\n')
    expect(text).toContain('sluice_fleet_instances 1\n')
    const gauges = page.filter(({ type }) => String(type) === 'gauge')
    const summed = gauges.filter(({ aggregator }) => aggregator === 'sum')
    expect(summed.map(({ name }) => name)).toEqual([
      'sluice_keys_owed',
      'sluice_prefetch_hot_keys',
      'sluice_uncounted_units',
      'sluice_region_held_units',
      'sluice_outbound_waiting',
    ])
  })

  it.each([[{}], [{ registry: {} }], [{ registry: undefined }]])('refuses %j', (options) => {
    const connect = () => Reflect.apply(prometheus, undefined, [collectMetrics(), options])
    expect(connect).toThrow(/registry must be a Registry of prom-client 15/)
  })
})
