import { trace } from '@opentelemetry/api'
import { collectMetrics } from '@sluice/metrics'
import { openTelemetry, traces } from '@sluice/metrics/opentelemetry'
import { describe, expect, it } from 'vitest'
import { readText } from '../support/workspace.ts'
import { everyMetric } from './every-metric.ts'
import { meterOfSdk, traceTests } from './otel.ts'
import { limited } from './scrape.ts'

describe('openTelemetry() with the SDK', () => {
  it('exports the values of counters, gauges and histograms', async () => {
    const { meter, exported: read } = meterOfSdk()
    const { metrics, limiter } = limited({ limit: 1 })
    openTelemetry(metrics, { meter })
    openTelemetry(metrics, { meter })
    const others = () => openTelemetry(collectMetrics(), { meter })
    expect(others).toThrow(/meter: it already exports other metrics/)
    for (let i = 0; i < 3; i += 1) await limiter.consume('a')
    const exported = await read()
    const pointsOf = (name: string) =>
      exported.find(({ descriptor }) => descriptor.name === name)?.dataPoints
    const denied = { 'sluice.policy': 'api', 'sluice.result': 'denied' }
    const point = expect.objectContaining({ attributes: denied, value: 2 })
    expect(pointsOf('sluice.checks')).toContainEqual(point)
    expect(pointsOf('sluice.policy_limit')).toMatchObject([{ value: 1 }])
    expect(pointsOf('sluice.used_ratio')).toMatchObject([
      { value: { count: 1, sum: 1, buckets: { boundaries: [0.5, 0.8, 0.9, 0.95, 0.99, 1] } } },
    ])
  })

  it('exports every metric by its name, unit and attributes', async () => {
    const { meter, exported } = meterOfSdk()
    await everyMetric((metrics) => openTelemetry(metrics, { meter }))
    const shown = (await exported()).map(({ descriptor: { name, unit }, dataPoints }) => {
      const attributes = Object.keys(dataPoints[0]?.attributes ?? {})
      const labels = attributes.map((attribute) => `\`${attribute.replace('sluice.', '')}\``)
      return [`\`${name}\``, `\`${unit}\``, labels.join(', ')]
    })
    // The table of the docs, whose first column has both names.
    const rows = readText('docs/metrics.md')
      .split('\n')
      .filter((line) => line.startsWith('| `'))
    const told = rows.map((row) => {
      const [names = '', , unit, labels] = row.slice(2).split(' | ')
      return [names.split(', ')[1], unit, labels?.trim() ?? '']
    })
    expect(shown.sort()).toEqual(told.sort())
  })

  it.each([[{}], [{ meter: {} }]])('refuses %j', (options) => {
    const connect = () => Reflect.apply(openTelemetry, undefined, [collectMetrics(), options])
    expect(connect).toThrow(/meter must be a meter/)
  })
})

describe('traces() with the SDK', () => {
  const exporter = traceTests()

  it('adds the decision to the span of the request, without its identity', async () => {
    const { limiter } = limited({ limit: 1, observers: [traces({ trace })] })
    await limiter.consume('canary')
    await trace.getTracer('test').startActiveSpan('request', async (span) => {
      await limiter.consume('canary')
      span.end()
    })
    const [span] = exporter.getFinishedSpans()
    expect(span?.attributes).toMatchObject({
      'sluice.allowed': false,
      'sluice.policy': 'api',
      'sluice.answered_by': 'memory',
      'sluice.remaining': 0,
    })
    expect(span?.attributes['sluice.retry_after_ms']).toBeGreaterThan(0)
    expect(span?.events.map(({ name }) => name)).toEqual(['sluice.decision'])
    expect(JSON.stringify([span?.attributes, span?.events])).not.toContain('canary')
  })

  it("creates a span per store call, outside of its requests' traces", () => {
    const call = { requests: 3, checks: 6, startedAt: Date.now(), durationMs: 5, failed: true }
    trace.getTracer('test').startActiveSpan('request', (span) => {
      traces({ trace }).onStoreCall(call)
      span.end()
    })
    const [span] = exporter.getFinishedSpans()
    expect(span?.parentSpanContext).toBeUndefined()
    expect(span).toMatchObject({
      name: 'sluice.store.call',
      attributes: { 'sluice.requests': 3, 'sluice.checks': 6 },
      status: { code: 2 },
      duration: [0, 5_000_000],
    })
  })

  it('does nothing without an SDK', async () => {
    trace.disable()
    const { limiter } = limited({ observers: [traces({ trace })] })
    expect((await limiter.consume('a')).allowed).toBe(true)
    expect(exporter.getFinishedSpans()).toEqual([])
  })

  it.each([[{}], [{ trace: {} }]])('refuses %j', (options) => {
    expect(() => Reflect.apply(traces, undefined, [options])).toThrow(/trace must be trace of/)
  })
})
