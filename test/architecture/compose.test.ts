import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readManifest, readText, root } from '../support/workspace.ts'

interface Compose {
  services: Record<string, Service>
}

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

interface Workflow {
  jobs: Record<string, Job>
}

interface Job {
  strategy: { matrix: { node: number[] } }
  steps: { uses?: string; run?: string; with?: Record<string, string> }[]
}

interface PrometheusConfig {
  rule_files: string[]
  scrape_configs: { static_configs: { targets: string[] }[] }[]
}

const host = 'host.docker.internal'
const NODES = ['cluster-1', 'cluster-2', 'cluster-3']
const watchers = ['prometheus', 'alertmanager', 'grafana']

describe('docker-compose.yml', () => {
  const { services } = readYaml<Compose>('docker-compose.yml')
  const withProfile = (profile: string | undefined) =>
    Object.keys(services).filter((name) => services[name]?.profiles?.[0] === profile)

  it.each([
    [undefined, ['redis']],
    ['valkey', ['valkey']],
    ['cluster', [...NODES, 'cluster-create']],
    ['rabbitmq', ['rabbitmq']],
    ['observability', watchers],
  ])('starts with the profile %s: %j', (profile, names) => {
    expect(withProfile(profile)).toEqual(names)
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

  it('joins three masters once all of them are healthy', () => {
    const { command, depends_on } = services['cluster-create'] ?? {}
    const script = String(command)
    expect(script).toContain(
      'redis-cli --cluster create 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003 --cluster-replicas 0',
    )
    expect(depends_on).toEqual(
      Object.fromEntries(NODES.map((name) => [name, { condition: 'service_healthy' }])),
    )
    for (const name of NODES) expect(services[name]?.command).toContain('--cluster-enabled yes')
  })

  it('gives all nodes of the cluster one network, where their announced addresses are right', () => {
    const others = [...NODES.slice(1), 'cluster-create']
    for (const name of others) expect(services[name]?.network_mode).toBe('service:cluster-1')
    expect(services['cluster-1']?.ports).toEqual(['7001:7001', '7002:7002', '7003:7003'])
  })

  describe('with the profile observability', () => {
    it('starts Prometheus, Alertmanager and Grafana, with files that exist', () => {
      for (const name of watchers) {
        for (const volume of services[name]?.volumes ?? []) {
          const [source = '', target, access] = volume.split(':')
          expect(existsSync(root + source), volume).toBe(true)
          expect([target?.startsWith('/'), access]).toEqual([true, 'ro'])
        }
      }
    })

    it('watches the example on the ports where it listens', () => {
      const config = readYaml<PrometheusConfig>('examples/admin/prometheus.yml')
      const [job] = config.scrape_configs
      expect(job?.static_configs[0]?.targets).toEqual([3000, 3001].map((port) => `${host}:${port}`))
      for (const name of watchers.slice(0, 2)) {
        expect(services[name]?.extra_hosts).toEqual([`${host}:host-gateway`])
      }
      const mounted = Object.values(services).flatMap(({ volumes }) => volumes ?? [])
      const targets = mounted.map((volume) => volume.split(':')[1])
      for (const file of config.rule_files) expect(targets).toContain(file)
    })

    it('gives Grafana the dashboards that ship, and the data source that they ask for', () => {
      const folder = 'examples/admin/grafana/provisioning'
      const { datasources } = readYaml<{ datasources: { type: string; url: string }[] }>(
        `${folder}/datasources/prometheus.yml`,
      )
      expect(datasources).toMatchObject([{ type: 'prometheus', url: 'http://prometheus:9090' }])
      const { providers } = readYaml<{ providers: { options: { path: string } }[] }>(
        `${folder}/dashboards/sluice.yml`,
      )
      const path = providers[0]?.options.path
      expect(services.grafana?.volumes).toContain(`./packages/metrics/dashboards:${path}:ro`)
    })
  })
})

describe('the workflow', () => {
  const job = readYaml<Workflow>('.github/workflows/ci.yml').jobs.test

  it('runs on every Node that we support', () => {
    expect(job?.strategy.matrix.node).toEqual([20, 22, 24])
    const setup = job?.steps.find(({ uses }) => uses?.startsWith('actions/setup-node@'))
    expect(setup?.with?.['node-version']).toBe('$' + '{{ matrix.node }}')
  })

  it('runs what everybody can run, with scripts that exist', () => {
    expect(job?.steps.flatMap(({ run }) => run ?? [])).toEqual(['.ci/run'])
    const scripts = [...readText('.ci/run').matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name)
    expect(scripts).toEqual(expect.arrayContaining(['build', 'check', 'docs', 'release:check']))
    expect(Object.keys(readManifest('.').scripts ?? {})).toEqual(expect.arrayContaining(scripts))
  })
})

function readYaml<Shape>(path: string): Shape {
  return parse(readText(path), { merge: true }) as Shape
}
