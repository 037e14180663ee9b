import { instrumentNames } from '@sluice/metrics'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningExample, startExample } from '../examples/start-example.ts'
import { freePort, freePortPair } from '../support/free-port.ts'
import { findOrInstall } from '../support/programs.ts'
import { until } from '../support/until.ts'
import { annotations, dashboards } from './dashboards.ts'

/** Alerts that the outage has to raise, and its end to take back. */
const outage = ['SluiceFallbackActive', 'SluiceBreakerOpen', 'SluiceFailedOpen']
const queries = [
  ...dashboards.flatMap(({ uid, panels }) =>
    panels.flatMap(({ title, targets }) =>
      targets.map(({ expr, legendFormat: legend }) => ({ uid, title, legend, expr })),
    ),
  ),
  // Nobody throws the kill switch of the example.
  ...annotations.slice(0, 1).map(({ name: title, expr }) => {
    return { uid: 'all', title, legend: 'annotation', expr }
  }),
]

let example: RunningExample
let prometheus = ''
let alertmanager = ''
const startedAt = Date.now() / 1_000

// The example runs two processes of an API under traffic, and freezes their Redis.
beforeAll(async () => {
  findOrInstall('redis')
  findOrInstall('prometheus')
  findOrInstall('alertmanager')
  const [promPort, alertPort] = [await freePort(), await freePort()]
  prometheus = `http://127.0.0.1:${promPort}`
  alertmanager = `http://127.0.0.1:${alertPort}`
  // Its processes have a clock three seconds ahead of the one of Redis, so that there is a skew to show.
  const ahead = 'const now = Date.now; Date.now = () => now() + 3000'
  example = startExample('admin', {
    ROLE: 'fleet',
    PORT: String(await freePortPair()),
    PROMETHEUS_PORT: String(promPort),
    ALERTMANAGER_PORT: String(alertPort),
    SECONDS: '150',
    FREEZE_SECONDS: '10',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(ahead)}`,
  })
  await example.printed(/^Alertmanager/m)
}, 400_000)

afterAll(() => example?.stop())

describe('two processes of an API whose Redis is frozen for ten seconds', () => {
  it('raise outage alerts, which Alertmanager shows and resolves', async () => {
    const seen = new Set<string>()
    const allShown = async () => {
      for (const name of await alertsShown()) seen.add(name)
      return outage.every((name) => seen.has(name))
    }
    await until(`Alertmanager shows ${outage}`, allShown, { timeoutMs: 60_000 })
    const noneShown = async () => !(await alertsShown()).some((name) => outage.includes(name))
    await until(`Alertmanager shows ${outage} no more`, noneShown, { timeoutMs: 60_000 })
    const printed = await example.printed(/^resolved: SluiceFallbackActive/m)
    for (const name of outage) expect(printed).toMatch(new RegExp(`^firing: ${name}: `, 'm'))
  }, 130_000)

  it('show every metric', async () => {
    const found = await ask('query', { query: 'group by (__name__) ({__name__=~"sluice_.+"})' })
    const names = found.map(({ metric }) => metric.__name__?.replace(/_(bucket|sum|count)$/, ''))
    expect([...new Set(names)].sort()).toEqual([...instrumentNames].sort())
  })

  it.each(queries)('have a series for $legend of "$title" in $uid', async ({ expr }) => {
    const query = expr
      .replaceAll('$__rate_interval', '5s')
      .replaceAll('$__interval', '1s')
      .replace(/=~"\$(\w+)"/g, (_, name) => (name === 'job' ? '=~"api"' : '=~".*"'))
    expect(query).not.toContain('$')
    const start = String(startedAt)
    const end = String(Date.now() / 1_000)
    const series = await ask('query_range', { query, start, end, step: '1' })
    const values = series.flatMap((one) => one.values ?? [])
    expect(values.filter(([, value]) => Number.isFinite(Number(value)))).not.toEqual([])
  })
})

interface Found {
  readonly metric: Readonly<Record<string, string>>
  readonly values?: readonly (readonly [time: number, value: string])[]
}

async function ask(api: string, query: Readonly<Record<string, string>>) {
  const response = await fetch(`${prometheus}/api/v1/${api}?${new URLSearchParams(query)}`)
  const text = await response.text()
  if (!response.ok) throw new Error(`${query.query}: ${text}`)
  const { data }: { data: { result: readonly Found[] } } = JSON.parse(text)
  return data.result
}

async function alertsShown(): Promise<readonly string[]> {
  const response = await fetch(`${alertmanager}/api/v2/alerts`)
  const alerts: readonly { labels: { alertname: string } }[] = JSON.parse(await response.text())
  return alerts.map(({ labels }) => labels.alertname)
}
