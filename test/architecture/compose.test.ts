import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readManifest, readText, root } from '../support/workspace.ts'

interface Service {
  command?: string | string[]
  ports?: string[]
  volumes?: string[]
  profiles?: string[]
  healthcheck?: { test: string[]; interval: string; retries: number }
}

interface Job {
  strategy: { matrix: { node: number[] } }
  steps: { uses?: string; run?: string; with?: Record<string, string> }[]
}

describe('docker-compose.yml', () => {
  const { services } = readYaml<{ services: Record<string, Service> }>('docker-compose.yml')

  it('starts Redis alone, unless a profile is named', () => {
    const always = Object.keys(services).filter((name) => services[name]?.profiles === undefined)
    expect(always).toEqual(['redis'])
  })

  it('publishes no port twice', () => {
    const published = Object.values(services)
      .flatMap(({ ports }) => ports ?? [])
      .map((port) => port.split(':').at(-2))
    expect(new Set(published).size).toBe(published.length)
  })

  it('checks the health of every server, at the port it listens on', () => {
    const servers = Object.entries(services).filter(([name]) => name !== 'cluster-create')
    for (const [name, { command, healthcheck }] of servers) {
      expect(healthcheck, name).toMatchObject({ interval: '2s', retries: 15 })
      expect(healthcheck?.test.at(-1), name).toMatch(/^ping$|^http:.+health/)
      const port = /--port (\d+)/.exec(String(command))?.[1]
      if (port !== undefined) expect(healthcheck?.test, name).toContain(port)
    }
  })

  it('mounts files that exist: the alerts that Prometheus reads, and the dashboards that ship', () => {
    const volumes = Object.values(services).flatMap((service) => service.volumes ?? [])
    const mounted = volumes.map((volume) => volume.split(':'))
    for (const [source = ''] of mounted) expect(existsSync(root + source), source).toBe(true)
    const { rule_files } = readYaml<{ rule_files: string[] }>('examples/admin/prometheus.yml')
    expect(mounted.map(([, target]) => target)).toEqual(expect.arrayContaining(rule_files))
    const { providers } = readYaml<{ providers: { options: { path: string } }[] }>(
      'examples/admin/grafana/provisioning/dashboards/sluice.yml',
    )
    const path = providers[0]?.options.path
    expect(volumes).toContain(`./packages/metrics/dashboards:${path}:ro`)
  })
})

it('the workflow runs existing npm scripts, on every supported Node version', () => {
  const job = readYaml<{ jobs: Record<string, Job> }>('.github/workflows/ci.yml').jobs.test
  expect(job?.strategy.matrix.node).toEqual([20, 22, 24])
  const setup = job?.steps.find(({ uses }) => uses?.startsWith('actions/setup-node@'))
  expect(setup?.with?.['node-version']).toBe('$' + '{{ matrix.node }}')
  expect(job?.steps.flatMap(({ run }) => run ?? [])).toEqual(['.ci/run'])
  const scripts = [...readText('.ci/run').matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name)
  expect(scripts).toEqual(expect.arrayContaining(['build', 'check', 'docs', 'release:check']))
  expect(Object.keys(readManifest('.').scripts ?? {})).toEqual(expect.arrayContaining(scripts))
})

function readYaml<Shape>(path: string): Shape {
  return parse(readText(path), { merge: true }) as Shape
}
