import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readManifest, readText, root } from '../support/workspace.ts'

interface Service {
  image: string
  command?: string | string[]
  ports?: string[]
  volumes?: string[]
  extra_hosts?: string[]
  profiles?: string[]
  network_mode?: string
  healthcheck?: { test: string[]; interval: string; retries: number }
  depends_on?: string[] | Record<string, { condition: string }>
}

interface Job {
  strategy: { matrix: { node: number[] } }
  steps: { uses?: string; run?: string; with?: Record<string, string> }[]
}

const host = 'host.docker.internal'
const masters = ['cluster-1', 'cluster-2', 'cluster-3']

describe('docker-compose.yml', () => {
  const { services } = readYaml<{ services: Record<string, Service> }>('docker-compose.yml')
  const namesOf = (profile: string) =>
    Object.keys(services).filter((name) => (services[name]?.profiles?.[0] ?? '') === profile)
  const watchers = namesOf('observability')

  it('starts Redis, and by profile what else there is', () => {
    expect(namesOf('')).toEqual(['redis'])
    expect(namesOf('valkey')).toEqual(['valkey'])
    expect(namesOf('cluster')).toEqual([...masters, 'cluster-create'])
    expect(namesOf('rabbitmq')).toEqual(['rabbitmq'])
    expect(watchers).toEqual(['prometheus', 'alertmanager', 'grafana'])
  })

  it('publishes the ports that everybody expects, and none twice', () => {
    expect(services.redis?.ports).toEqual(['6379:6379'])
    expect(services.rabbitmq?.ports).toEqual(['5672:5672'])
    expect(services.valkey?.image).toMatch(/^valkey\//)
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

  it('joins three masters in one network once all of them are healthy', () => {
    const { command, depends_on } = services['cluster-create'] ?? {}
    expect(String(command)).toContain(
      'redis-cli --cluster create 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003 --cluster-replicas 0',
    )
    expect(depends_on).toEqual(
      Object.fromEntries(masters.map((name) => [name, { condition: 'service_healthy' }])),
    )
    for (const name of masters) expect(services[name]?.command).toContain('--cluster-enabled yes')
    // The addresses that the masters announce are right there only.
    for (const name of [...masters.slice(1), 'cluster-create'])
      expect(services[name]?.network_mode).toBe('service:cluster-1')
    expect(services['cluster-1']?.ports).toEqual(['7001:7001', '7002:7002', '7003:7003'])
  })

  it('gives the profile observability files that exist, the ports of the example, and the dashboards that ship', () => {
    const volumes = watchers.flatMap((name) => services[name]?.volumes ?? [])
    const mounted = volumes.map((volume) => volume.split(':'))
    for (const [source = '', target, access] of mounted) {
      expect(existsSync(root + source), source).toBe(true)
      expect([target?.startsWith('/'), access]).toEqual([true, 'ro'])
    }
    const config = readYaml<{
      rule_files: string[]
      scrape_configs: { static_configs: { targets: string[] }[] }[]
    }>('examples/admin/prometheus.yml')
    const [job] = config.scrape_configs
    expect(job?.static_configs[0]?.targets).toEqual([`${host}:3000`, `${host}:3001`])
    for (const name of watchers.slice(0, 2))
      expect(services[name]?.extra_hosts).toEqual([`${host}:host-gateway`])
    const targets = mounted.map(([, target]) => target)
    expect(targets).toEqual(expect.arrayContaining(config.rule_files))
    const folder = 'examples/admin/grafana/provisioning'
    expect(readYaml(`${folder}/datasources/prometheus.yml`)).toMatchObject({
      datasources: [{ type: 'prometheus', url: 'http://prometheus:9090' }],
    })
    const { providers } = readYaml<{ providers: { options: { path: string } }[] }>(
      `${folder}/dashboards/sluice.yml`,
    )
    const path = providers[0]?.options.path
    expect(services.grafana?.volumes).toContain(`./packages/metrics/dashboards:${path}:ro`)
  })
})

it('the workflow runs what everybody can run, with scripts that exist, on every Node that we support', () => {
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
