import { instrumentNames, instruments } from '@sluice/metrics'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { readText } from '../support/workspace.ts'
import { alerts, quickRulesFile, rulesFile, site } from './alerts.ts'
import { annotations, dashboards, grafanaJson } from './dashboards.ts'

const queries = dashboards
  .flatMap(({ panels }) => panels.flatMap((panel) => panel.queries.map(([expr]) => expr)))
  .concat(annotations.map(({ expr }) => expr))

describe('the alerts', () => {
  it.each([
    ['the file that ships', rulesFile, 'packages/metrics/alerts/sluice.rules.yml'],
    ['a quick copy for the example', quickRulesFile, 'examples/admin/quick.rules.yml'],
  ])('are written to %s', async (_, rules, file) => {
    const head = `# Written from test/metrics/alerts.ts of Sluice. Runbooks: ${site}observability.html\n`
    const text = head + stringify(rules, { lineWidth: 0 })
    await expect(text).toMatchFileSnapshot(`../../${file}`)
  })

  it.each(alerts)('$name has a runbook in the docs', ({ name }) => {
    expect(readText('docs/observability.md')).toContain(`\n### ${name}\n`)
  })
})

describe('the dashboards', () => {
  it.each(dashboards)('$uid is written to the file that ships', async (dashboard) => {
    const file = `../../packages/metrics/dashboards/${dashboard.uid}.json`
    await expect(grafanaJson(dashboard)).toMatchFileSnapshot(file)
  })

  it('ask for no fixed interval, and for one data source that the reader chooses', () => {
    for (const query of queries) expect(query).not.toMatch(/(\[|offset )\d/)
    for (const dashboard of dashboards) {
      expect(grafanaJson(dashboard)).not.toMatch(/"uid": "(?!sluice-|\$\{datasource\})/)
    }
  })

  it.each(dashboards)('$uid lets the reader choose what its panels ask for', (dashboard) => {
    const { templating, panels } = JSON.parse(grafanaJson(dashboard))
    const list: readonly Variable[] = templating.list
    const asked = [...JSON.stringify(panels).matchAll(/=~\\"\$(\w+)\\"/g)].map(([, name]) => name)
    const named = list.filter(({ type }) => type === 'query')
    expect(named.map(({ name }) => name).sort()).toEqual([...new Set(asked)].sort())
    for (const { name, query, allValue } of named) {
      // Every process of Sluice shows this metric. The other choices are those of the jobs.
      const isJob = name === 'job'
      expect(query).toContain(isJob ? '(sluice_fleet_instances,' : '{job=~"$job"}')
      expect(allValue).toBe(isJob ? undefined : '.*')
    }
  })
})

interface Variable {
  readonly name: string
  readonly type: string
  readonly query: string
  readonly allValue?: string
}

it('every metric is on a panel or in an alert', () => {
  const text = [...queries, ...alerts.map(({ expr }) => expr)].join('\n')
  expect(instrumentNames.filter((name) => !text.includes(name))).toEqual([])
})

it('panels and alerts ask for metrics that exist', () => {
  const all = [...queries, ...alerts.map(({ expr }) => expr)]
  const asked = all.flatMap((expr) => [...expr.matchAll(/(sluice_[a-z_]+)(?:\{(.*?)\})?/g)])
  const unknown = asked.flatMap(([, name = '', matchers = '']) => {
    const labels = labelsOf.get(name.replace(/_(bucket|sum|count)$/, ''))
    if (!labels) return name
    const named = [...matchers.matchAll(/(\w+)=/g)].map(([, label = '']) => label)
    return named.filter((label) => !labels.includes(label)).map((label) => `${name} ${label}`)
  })
  expect(unknown).toEqual([])
  for (const expr of all) {
    const grouped = [...expr.matchAll(/(?:by|on) \(([\w, ]+)\)/g)].flatMap(([, list = '']) => {
      return list.split(/, */)
    })
    const names = expr.match(/sluice_[a-z_]+(?=[{[)])/g) ?? []
    const labels = names.flatMap((name) => labelsOf.get(name.replace(/_bucket$/, '')) ?? [])
    if (names.length > 0) expect(labels, expr).toEqual(expect.arrayContaining(grouped))
  }
})

/** The labels of a metric, with those that Prometheus adds. */
const labelsOf: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(instruments).map(([name, { labels }]) => {
    return [name, [...labels, 'job', 'instance', 'le']]
  }),
)

it.each(dashboards)('each panel of $uid has its own words, units and place', (dashboard) => {
  const { panels, links } = JSON.parse(grafanaJson(dashboard))
  expect(JSON.stringify(links)).toMatch(/"url":"\$\{admin:raw\}"/)
  const places = new Set<string>()
  for (const { title, description, gridPos } of panels) {
    expect(description, title).toMatch(/\w{3}/)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) places.add(`${x} ${y}`)
    }
    expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
  }
  const area = panels.map(({ gridPos: { w, h } }: { gridPos: { w: number; h: number } }) => w * h)
  expect(places.size).toBe(area.reduce((sum: number, each: number) => sum + each, 0))
})
