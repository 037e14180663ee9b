import { type InstrumentName, instrumentNames, instruments, otelName } from '@sluice/metrics'
import { expect, it } from 'vitest'

const intro = `# Metrics

This page is written from the table in \`packages/metrics/src/instruments.ts\`. [Observability](observability.md) says how to read the metrics.

Names are those of Prometheus. OpenTelemetry has the second name, and its attributes begin with \`sluice.\`: the label \`policy\` is \`sluice.policy\`.

- No identity, key or secret is ever a label.
- \`route\` is a pattern: at most 200 of them. A metric has at most 2,000 series. Everything that finds no room is labelled \`other\`, and \`sluice_series_overflow_total\` counts it.
- \`route="unmatched"\`: no route was matched when the limiter ran.
- A policy without a name is labelled by its shape: \`default-100-60s\`. Give policies names.
- \`method_class\` is \`read\` (GET, HEAD, OPTIONS, TRACE, QUERY), \`write\`, or \`none\` where code called a limiter itself.
- \`result\` of a request is \`allowed\`, \`denied\`, \`shadow_denied\` (allowed, but a policy in shadow would have denied it), \`queued\`, \`skipped\`, \`shed\`, \`failed_open\` or \`failed_closed\`.
- \`result\` of a check is \`allowed\`, \`denied\`, \`unreached\`, \`fallback_allowed\`, \`fallback_denied\`, \`shadow_allowed\` or \`shadow_denied\`.
- Two limiters on one request count it once each.

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
