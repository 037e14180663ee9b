import { instrumentNames, instruments } from '@sluice/metrics'
import { describe, expect, it } from 'vitest'
import { readText } from '../support/workspace.ts'
import { cases, rules, rulesFile } from './alerts.ts'
import { annotations, dashboards } from './dashboards.ts'

const queries = dashboards
  .flatMap(({ panels }) => panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)))
  .concat(annotations.map(({ expr }) => expr))

const page = `${JSON.parse(readText('package.json')).homepage}observability.html`

describe('the alerts', () => {
  it('are the ones that are tested', () => {
    expect(rules.map(({ alert }) => alert)).toEqual(Object.keys(cases))
  })

  it.each(rules)('$alert has a severity, a summary, and a runbook in the docs', (rule) => {
    const { alert, labels, annotations } = rule
    expect(labels.severity).toMatch(/^(info|warning|critical)$/)
    expect(annotations.summary).toMatch(/\w{3}/)
    expect(annotations.runbook).toBe(`${page}#${alert.toLowerCase()}`)
    expect(readText('docs/observability.md')).toContain(`\n### ${alert}\n`)
  })

  it('have seconds instead of minutes in the example, for impatient readers', async () => {
    const quick = readText(rulesFile).replace(
      /(?<=\[|offset |for: )(\d+)([mhd])/g,
      (_, count, unit) => {
        return `${count * ({ m: 1, h: 60, d: 1_440 }[unit as string] ?? Number.NaN)}s`
      },
    )
    const head = `# Written from ${rulesFile}, with seconds in place of minutes.\n`
    await expect(head + quick).toMatchFileSnapshot('../../examples/admin/quick.rules.yml')
  })
})

it('no panel asks for a fixed interval', () => {
  for (const query of queries) expect(query).not.toMatch(/(\[|offset )\d/)
})

it('every metric is on a panel or in an alert', () => {
  const text = [...queries, ...rules.map(({ expr }) => expr)].join('\n')
  expect(instrumentNames.filter((name) => !text.includes(name))).toEqual([])
})

it('panels and alerts ask for metrics that exist', () => {
  const all = [...queries, ...rules.map(({ expr }) => expr)]
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

describe.each(dashboards)('the dashboard $uid', ({ uid, panels, templating, links, ...rest }) => {
  it('has variables for the data source and the labels of its panels', () => {
    expect(JSON.stringify({ panels, templating, rest })).not.toMatch(/"uid":"(?!\$\{datasource\})/)
    const asked = [...JSON.stringify(panels).matchAll(/=~\\"\$(\w+)\\"/g)].map(([, name]) => name)
    const named = templating.list.filter(({ type }) => type === 'query')
    expect(named.map(({ name }) => name).sort()).toEqual([...new Set(asked)].sort())
    for (const { name, query, allValue } of named) {
      // Every process of Sluice shows this metric. The other choices are those of the jobs.
      const isJob = name === 'job'
      expect(query).toContain(isJob ? '(sluice_fleet_instances,' : '{job=~"$job"}')
      expect(allValue).toBe(isJob ? undefined : '.*')
    }
  })

  it('has the common annotations and links, under a unique name', () => {
    expect(uid).toMatch(/^sluice-/)
    expect([rest.annotations.list, links]).toEqual([annotations, dashboards[0]?.links])
    expect(JSON.stringify(links)).toMatch(/"url":"\$\{admin:raw\}"/)
  })

  it('describes each panel by its metrics, or otherwise', () => {
    const own = ['On the fallback', 'Processes', 'Latency of the backend (99%)', 'Limits and modes']
    for (const { title, description, targets } of panels) {
      const asked = targets.map(({ expr }) => expr).join(' ')
      const known = Object.entries(instruments).filter(([name]) =>
        new RegExp(`${name}(?:_bucket|_sum|_count)?\\b`).test(asked),
      )
      const meaning = known.map(([, { help }]) => `${help}.`).join(' ')
      if (own.includes(title)) expect(description).toMatch(/\w{3}/)
      else expect([title, description]).toEqual([title, meaning])
    }
  })

  it('has a place for each panel', () => {
    const places = new Set<string>()
    for (const { gridPos } of panels) {
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) places.add(`${x} ${y}`)
      }
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
    }
    expect(places.size).toBe(panels.reduce((sum, { gridPos: { w, h } }) => sum + w * h, 0))
  })
})
