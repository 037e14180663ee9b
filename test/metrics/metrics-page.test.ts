import {
  collectMetrics,
  type InstrumentName,
  instrumentNames,
  instruments,
  metricsPage,
  otelName,
} from '@sluice/metrics'
import { describe, expect, it } from 'vitest'
import { readText } from '../support/workspace.ts'
import { pageRequest, scraped } from './scrape.ts'

function row(name: InstrumentName): string {
  const { kind, unit = 's', labels, help, buckets } = instruments[name]
  const bounds = buckets ? `. Buckets: ${buckets.join(', ')}` : ''
  const names = labels.map((label) => `\`${label}\``).join(', ')
  return `| \`${name}\`, \`${otelName(name)}\` | ${kind} | \`${unit}\` | ${names} | ${help}${bounds} |\n`
}

it('docs/metrics.md is written from the table of metrics', async () => {
  const [intro] = /^.*\n\| -[- |]*\n/s.exec(readText('docs/metrics.md')) ?? ['']
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
  it('writes OpenMetrics if accepted, and escapes labels', async () => {
    const metrics = collectMetrics()
    metrics.onEvent({ type: 'done', queue: 'a"b\\c\nd' })
    const text = await scraped(metrics, 'application/openmetrics-text;version=1.0.0,text/plain')
    expect(text).toContain('# TYPE sluice_jobs counter\n')
    expect(text).toContain('sluice_jobs_total{queue="a\\"b\\\\c\\nd",event="done"} 1\n')
    expect(text.endsWith('# EOF\n')).toBe(true)
  })

  it('answers only GET and HEAD at its mount', async () => {
    const page = metricsPage(collectMetrics())
    expect(await page(pageRequest({ method: 'POST' }))).toMatchObject({ status: 405 })
    expect(await page(pageRequest({ path: '/more' }))).toBeUndefined()
    expect(await page(pageRequest({ method: 'HEAD' }))).toMatchObject({
      status: 200,
      headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
    })
  })
})
