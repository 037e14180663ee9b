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

This page is written from the table in \`packages/metrics/src/instruments.ts\`. [Observability](observability.md) says how to read the metrics.

Names are those of Prometheus. OpenTelemetry has the second name, and its attributes begin with \`sluice.\`: the label \`policy\` is \`sluice.policy\`.

- No identity, key or secret is ever a label.
- \`route\` is a pattern: at most 200 of them. A metric has at most 2,000 series. A route, policy, queue or outbound that finds no room is labelled \`other\`, and \`sluice_series_overflow_total\` counts it.
- \`route="unmatched"\`: no route was matched when the limiter ran. A method that is not one of the common ones is \`OTHER\` in \`route\`.
- A policy without a name is labelled by its shape: \`default-100-60s\`. Give policies names.
- \`method_class\` is \`read\` (GET, HEAD, OPTIONS, TRACE, QUERY), \`write\`, or \`none\` where code called a limiter itself.
- \`result\` of a request is \`allowed\`, \`denied\`, \`queued\` (a queue took it), \`skipped\`, \`failed_open\` or \`failed_closed\`. \`shadow_denied\` was allowed, but a policy in shadow would have denied it. \`shed\` was refused under pressure, or because there was no room to hold it.
- \`result\` of a check is \`allowed\`, \`denied\`, \`unreached\`, \`fallback_allowed\`, \`fallback_denied\`, \`shadow_allowed\` or \`shadow_denied\`.
- Two limiters on one request count it once each.
- Of the decisions of the memory store, one in 16 is timed. \`sluice_decision_seconds\` counts the next 15 with the same time if they come within 50 ms, so its count is exact.

| metric | kind | unit | labels | what it tells |
| ------ | ---- | ---- | ------ | ------------- |
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
