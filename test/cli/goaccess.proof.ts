import { readFileSync } from 'node:fs'
import type { SimulationReport } from '@sluice/cli'
import fc from 'fast-check'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findOrNote } from '../support/programs.ts'
import { run } from '../support/run.ts'
import { runSluice } from './run-sluice.ts'
import { testFiles } from './test-files.ts'

interface Sent {
  readonly timeMs: number
  readonly ip: string
  readonly agent: string
  readonly method: string
  readonly path: string
  readonly status: number
}

/** A format, as goaccess calls it, and its writer. */
interface Format {
  /** As Sluice calls it. @default the name */
  readonly sluice?: string
  readonly goaccess: readonly string[]
  /** False where the format has no user agent: then a visitor is a host on a day. @default true */
  readonly hasAgent?: boolean
  line(sent: Sent): string
}

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')

/** `21/Nov/2026:10:00:00 +0000` */
function clf(timeMs: number): string {
  const [date = '', time = ''] = new Date(timeMs).toISOString().split('T')
  const [year, month, day] = date.split('-')
  return `${day}/${months[Number(month) - 1]}/${year}:${time.slice(0, 8)} +0000`
}

const iso = (timeMs: number): string => new Date(timeMs).toISOString()
const common = ({ ip, timeMs, method, path, status }: Sent): string =>
  `${ip} - - [${clf(timeMs)}] "${method} ${path} HTTP/1.1" ${status} 120`
const combined = (sent: Sent): string => `${common(sent)} "-" "${sent.agent}"`
const format = (text: string): readonly string[] => ['--log-format', text]
const json = (fields: object): readonly string[] => format(JSON.stringify(fields))
const isoDates = ['--date-format', '%Y-%m-%d', '--time-format', '%H:%M:%S']

const formats: Readonly<Record<string, Format>> = {
  common: { goaccess: format('COMMON'), hasAgent: false, line: common },
  combined: { goaccess: format('COMBINED'), line: combined },
  'vhost-combined': {
    goaccess: format('VCOMBINED'),
    line: (sent) => `api.example.com:443 ${combined(sent)}`,
  },
  nginx: {
    sluice:
      '$time_iso8601|$remote_addr|$request_method|$request_uri|$status|$request_time|$http_user_agent',
    goaccess: [...format('%dT%t+00:00|%h|%m|%U|%s|%T|%u'), ...isoDates],
    line: ({ timeMs, ip, method, path, status, agent }) =>
      `${iso(timeMs).slice(0, 19)}+00:00|${ip}|${method}|${path}|${status}|0.004|${agent}`,
  },
  alb: {
    goaccess: format('AWSALB'),
    line: ({ timeMs, ip, method, path, status, agent }) =>
      `https ${iso(timeMs).replace('Z', '000Z')} app/lb/1 ${ip}:2817 10.0.0.1:80 0.000 0.001 0.000 ${status} ${status} 34 366 "${method} https://api.example.com:443${path} HTTP/1.1" "${agent}" ECDHE TLSv1.2 arn:aws "Root=1" "api.example.com" "arn:aws" 0 ${iso(timeMs).replace('Z', '000Z')} "forward" "-" "-" "10.0.0.1:80" "${status}" "-" "-"`,
  },
  cloudfront: {
    goaccess: format('CLOUDFRONT'),
    line: ({ timeMs, ip, method, path, status, agent }) =>
      [
        ...[iso(timeMs).slice(0, 10), iso(timeMs).slice(11, 19), 'FRA2', '366', ip, method],
        ...['d1.cloudfront.net', path, status, '-', encodeURIComponent(agent), '-', '-', 'Hit'],
        ...['id', 'api.example.com', 'https', '34', '0.004', '-'],
      ].join('\t'),
  },
  caddy: {
    goaccess: format('CADDY'),
    line: ({ timeMs, ip, method, path, status, agent }) =>
      JSON.stringify({
        ...{ level: 'info', ts: Number((timeMs / 1_000 + 0.001).toFixed(3)) },
        logger: 'http.log.access',
        request: {
          ...{ remote_ip: ip, client_ip: ip, proto: 'HTTP/1.1', method, host: 'api.example.com' },
          ...{ uri: path, headers: { 'User-Agent': [agent] } },
        },
        ...{ duration: 0.004, size: 120, status },
      }),
  },
  traefik: {
    goaccess: [
      ...json({
        ...{ ClientHost: '%h', DownstreamStatus: '%s', RequestMethod: '%m', RequestPath: '%U' },
        ...{ StartUTC: '%dT%t.%^', 'request_User-Agent': '%u' },
      }),
      ...isoDates,
    ],
    line: ({ timeMs, ip, method, path, status, agent }) =>
      JSON.stringify({
        ...{ ClientHost: ip, DownstreamStatus: status, Duration: 4_000_000 },
        ...{ RequestMethod: method, RequestPath: path, StartUTC: iso(timeMs) },
        'request_User-Agent': agent,
      }),
  },
  'pino-http': {
    goaccess: [
      ...json({
        ...{ time: '%x', res: { statusCode: '%s' } },
        req: { method: '%m', url: '%U', remoteAddress: '%h', headers: { 'user-agent': '%u' } },
      }),
      // Milliseconds since 1970.
      ...['--datetime-format', '%f'],
    ],
    line: ({ timeMs, ip, method, path, status, agent }) =>
      JSON.stringify({
        ...{ level: 30, time: timeMs },
        req: { method, url: path, headers: { 'user-agent': agent }, remoteAddress: ip },
        ...{ res: { statusCode: status }, responseTime: 4, msg: 'request completed' },
      }),
  },
  envoy: {
    goaccess: [
      ...json({
        ...{ start_time: '%dT%t.%^', method: '%m', path: '%U', response_code: '%s' },
        ...{ downstream_remote_address: '%h:%^', user_agent: '%u' },
      }),
      ...isoDates,
    ],
    line: ({ timeMs, ip, method, path, status, agent }) =>
      JSON.stringify({
        ...{ start_time: iso(timeMs), method, path, response_code: status, duration: 4 },
        ...{ downstream_remote_address: `${ip}:4711`, user_agent: agent },
      }),
  },
}

const { folder, write } = testFiles('goaccess')
let goaccess: string | undefined
beforeAll(() => {
  goaccess = findOrNote('goaccess', 'logs against goaccess')
}, 400_000)

beforeEach((test) => {
  if (!goaccess) test.skip('there is no goaccess')
})

describe('hits and visitors a host', { timeout: 60_000 }, () => {
  it.each(Object.entries(formats))('are those of goaccess in the format %s', async (name, read) => {
    const { sluice = name, hasAgent = true, ...format } = read
    const log = write(`${name}.log`, requests.map((sent) => `${format.line(sent)}\n`).join(''))
    const witness = await askGoaccess(log, format.goaccess)
    const own = await askSluice(log, sluice, hasAgent)
    expect(own).toEqual(witness)
    expect([...own.values()].reduce((sum, { hits }) => sum + hits, 0)).toBe(requests.length)
  })
})

interface Counts {
  readonly hits: number
  readonly visitors: number
}

type Hosts = ReadonlyMap<string, Counts>

async function askGoaccess(log: string, of: readonly string[]): Promise<Hosts> {
  const result = `${log}.json`
  const quiet = ['--no-global-config', '--no-progress', '--4xx-to-unique-count']
  const args = [log, ...of, ...quiet, '--max-items', '1000', '-o', result]
  await run(goaccess ?? '', args, { cwd: folder, timeoutMs: 30_000 })
  const { hosts } = JSON.parse(readFileSync(result, 'utf8'))
  const found: { data: string; hits: { count: number }; visitors: { count: number } }[] = hosts.data
  return new Map(
    found.map(({ data, hits, visitors }) => [data, { hits: hits.count, visitors: visitors.count }]),
  )
}

/** A limit of 0 denies every request, so that every client is listed. */
async function askSluice(log: string, name: string, hasAgent: boolean): Promise<Hosts> {
  const key = hasAgent ? '{ all: [ip, agent] }' : 'ip'
  const file = `key: ${key}\npolicies: [{ name: none, limit: 0, window: 1h }]\n`
  const policies = write('sluice.yaml', file)
  const keys = hasAgent ? ['--key', 'agent=header:user-agent'] : []
  const args = ['simulate', log, '-p', policies, '--format', name, '--json', ...keys]
  const { stdout, stderr } = await runSluice(args)
  expect(stdout, stderr).not.toBe('')
  const report: SimulationReport = JSON.parse(stdout)
  expect(report.log.unreadable.lines).toBe(0)
  const hosts = new Map<string, Counts>()
  for (const { client, requests } of report.deniedClients) {
    const ip = addressIn(client)
    const { hits, visitors } = hosts.get(ip) ?? { hits: 0, visitors: 0 }
    hosts.set(ip, { hits: hits + requests, visitors: visitors + 1 })
  }
  return hosts
}

/** The address of a client. A key of several parts has the length before each of them. */
function addressIn(client: string): string {
  const [, length, rest = client] = /^\D*(\d+):(@ip\/.*)$/s.exec(client) ?? []
  return rest.slice(0, length === undefined ? undefined : Number(length)).replace('@ip/', '')
}

const agents = [
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36',
  'curl/8.5.0',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:130.0) Gecko/20100101 Firefox/130.0',
  'python-requests/2.32.3',
]
const sent = fc.record({
  ip: fc.tuple(fc.nat(69), fc.nat(69)).map((hosts) => `192.0.2.${1 + Math.min(...hosts)}`),
  agent: fc.constantFrom(...agents),
  method: fc.constantFrom('GET', 'GET', 'POST'),
  path: fc.constantFrom('/', '/search', '/users/42', '/app.css', '/login'),
  status: fc.constantFrom(200, 200, 200, 304, 404, 429, 500),
})

/** Requests of one day by 70 hosts, some of them busy. */
const requests: readonly Sent[] = fc.sample(sent, { numRuns: 3_000, seed: 7 }).map((one, index) => {
  return { ...one, timeMs: Date.UTC(2026, 10, 21, 1) + index * 20_000 }
})
