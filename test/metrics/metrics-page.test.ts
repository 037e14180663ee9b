import {
  collectMetrics,
  type InstrumentName,
  instrumentNames,
  instruments,
  metricsPage,
  otelName,
} from '@sluice/metrics'
import { describe, expect, it } from 'vitest'
import { pageRequest, scraped } from './scrape.ts'

const intro = `# Metrics

This page is generated from the table in \`packages/metrics/src/instruments.ts\`. [Observability](observability.md) explains how to use the metrics.

The first name is for Prometheus, the second for OpenTelemetry. OpenTelemetry attributes start with \`sluice.\`: the label \`policy\` is \`sluice.policy\`.

- No identity, key or secret is ever a label.
- \`route\` is a pattern; there are at most 200. A metric has at most 2,000 series. Beyond these limits, routes, policies, queues and outbounds are labelled \`other\`, and \`sluice_series_overflow_total\` counts them.
- \`route="unmatched"\` means that no route had been matched when the limiter ran. An uncommon method is \`OTHER\` in \`route\`.
- A policy without a name is labelled by its shape: \`default-100-60s\`. So name your policies.
- \`method_class\` is \`read\` (GET, HEAD, OPTIONS, TRACE, QUERY), \`write\`, or \`none\` if your code called a limiter directly.
- The \`result\` of a request is \`allowed\`, \`denied\`, \`queued\` (a queue took it), \`skipped\`, \`failed_open\` or \`failed_closed\`. A \`shadow_denied\` request was allowed, but a policy in shadow would have denied it. A \`shed\` request was refused under load, or because there was no room to hold it.
- The \`result\` of a check is \`allowed\`, \`denied\`, \`unreached\`, \`fallback_allowed\`, \`fallback_denied\`, \`shadow_allowed\` or \`shadow_denied\`.
- If a request passes through two limiters, each counts it once.
- Only one in 16 decisions by the memory store is timed. \`sluice_decision_seconds\` counts the next 15 with the same time if they follow within 50 ms, so its count is exact.

| metric | kind | unit | labels | meaning |
| --- | --- | --- | --- | --- |
`

function row(name: InstrumentName): string {
  const { kind, unit = 's', labels, help, buckets } = instruments[name]
  const bounds = buckets ? `. Buckets: ${buckets.join(', ')}` : ''
  const names = labels.map((label) => `\`${label}\``).join(', ')
  return `| \`${name}\`, \`${otelName(name)}\` | ${kind} | \`${unit}\` | ${names} | ${help}${bounds} |\n`
}

it('docs/metrics.md is written from the table of metrics', async () => {
  const page = intro + instrumentNames.map(row).join('')
  await expect(page).toMatchFileSnapshot('../../docs/metrics.md')
})

it('names are unique, in base units, and counters end with _total', () => {
  expect(new Set(instrumentNames.map(otelName)).size).toBe(instrumentNames.length)
  for (const name of instrumentNames) {
    expect(name).toMatch(/^sluice_[a-z_]+$/)
    expect(name).not.toMatch(/_ms|_millis|_percent/)
    expect(name.endsWith('_total')).toBe(instruments[name].kind === 'counter')
  }
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
    expect(await page(pageRequest({ method: 'POST' }))).toMatchObject({ status: 405 })
    expect(await page(pageRequest({ path: '/more' }))).toBeUndefined()
    expect(await page(pageRequest({ method: 'HEAD' }))).toMatchObject({
      status: 200,
      headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
    })
  })
})
