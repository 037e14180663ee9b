import { readFileSync } from 'node:fs'
import type { SimulationReport } from '@sluice/cli'
import { describe, expect, it } from 'vitest'
import { generateLog, groundTruth } from '../../examples/simulator/generate-log.ts'
import { reported, runSluice } from './run-sluice.ts'
import { testFiles } from './test-files.ts'

const { at, write } = testFiles('suggest')
const text = generateLog()
const log = write('access.log', text)
/** The first requests of the log, for what does not depend on their number. */
const start = write('start.log', text.split('\n').slice(0, 500).join('\n'))
const written = at('sluice.yaml')
const startMs = 1_795_255_200_000
const fields = ['--fields', 'time=t,ip=ip,method=m,path=p']

interface Sent {
  /** In ms after the begin. */
  readonly at: number
  readonly ip?: string
  readonly [field: string]: unknown
}

/** Writes a log of JSON. @returns its path, and how its fields are read */
function logOf(name: string, requests: readonly Sent[]): readonly string[] {
  const lines = requests.map(({ at, ...sent }) =>
    JSON.stringify({ ip: '::1', m: 'GET', p: '/', ...sent, t: startMs + at }),
  )
  return [write(name, lines.join('\n')), ...fields]
}

// Each replays 33,570 requests, which takes a slow machine long.
describe('sluice suggest', { timeout: 60_000 }, () => {
  it('finds the limits of the log, without the scraper', async () => {
    const found = await suggested([log, '-o', written])
    const { requests, identities, unreadable, scraper, rates } = groundTruth
    expect(found.log).toMatchObject({ requests, unreadable: { lines: unreadable }, late: 0 })
    expect(found.identities).toBe(identities)
    expect(found.outliers).toEqual([
      { client: `@ip/${scraper}`, requests: rates.scraper?.[3], denied: 0, rates: rates.scraper },
    ])
    const kinds = ['reader', 'app', 'importer'].map((kind) => rates[kind] ?? [])
    const maxima = [0, 1, 2, 3].map((at) => Math.max(...kinds.map((each) => each[at] ?? 0)))
    expect(found.quantiles).toMatchObject(maxima.map((max) => ({ max })))
    expect(found.pair).toMatchObject({
      burst: { limit: 8, windowMs: 10_000 },
      sustained: { limit: 30, windowMs: 60_000 },
      touched: 0,
    })
    // One in forty may exceed the sustained limit: the importers are the one in a hundred who do.
    const loose = { maxTouched: 0.05, sustained: { limit: 8 }, touched: 19 }
    const pair = { ...loose, sustained: expect.objectContaining(loose.sustained) }
    expect(found.alternatives).toContainEqual(expect.objectContaining(pair))
  })

  it('writes a valid policy file that affects only the listed clients', async () => {
    expect((await runSluice(['check', written])).exitCode).toBe(0)
    expect(readFileSync(written, 'utf8')).toContain(`#   ips: ['${groundTruth.scraper}']`)
    const words = ['simulate', log, '-p', written]
    const { deniedClients, totals, rates } = await reported<SimulationReport>(words)
    expect(totals).toMatchObject({ requests: groundTruth.requests, clientsDenied: 1 })
    expect(deniedClients).toMatchObject([{ client: `@ip/${groundTruth.scraper}`, requests: 4_800 }])
    expect(rates.clients[0]).toMatchObject({ rates: groundTruth.rates.scraper })
  })

  it('counts pairs that are a little less than a minute apart', async () => {
    const pairs = Array.from({ length: 20 }, (_, client) =>
      [999, 60_000].map((at) => ({ at, ip: `192.0.2.${client}` })),
    )
    const { pair } = await suggested(logOf('pairs.log', pairs.flat()))
    expect(pair).toMatchObject({ sustained: { limit: 2, windowMs: 60_000 }, touched: 0 })
  })

  it('treats a group of busy clients as users, and one far above them as an outlier', async () => {
    // 85 of 900 clients send 30 requests in a minute, one sends 500, and all others send one.
    const requests = Array.from({ length: 900 }, (_, client) => {
      const count = client === 0 ? 500 : client <= 85 ? 30 : 1
      const ip = `10.0.${client >> 8}.${client & 255}`
      return Array.from({ length: count }, (_none, at) => ({ at, ip }))
    })
    const group = logOf('group.log', requests.flat())
    const found = await suggested(group)
    expect(found).toMatchObject({ pair: { sustained: { limit: 30 }, touched: 0 }, outlierCount: 1 })
    expect(found.outliers).toMatchObject([{ client: '@ip/10.0.0.0' }])
    const { stdout } = await runSluice(['suggest', ...group])
    expect(stdout).toContain('0 of 900 (0%), not counting 1 left out')
  })

  it('finds password guessing at a normal rate', async () => {
    /** 55 requests a minute. */
    const requests = (ip: string, count: number, of: (index: number) => { p: string; s: number }) =>
      Array.from({ length: count }, (_, index) => {
        return { at: Math.floor((index * 60_000) / 55), ip, m: 'POST', ...of(index) }
      })
    const login = (isWrong: boolean) => ({ p: '/login', s: isWrong ? 401 : 200 })
    const users = Array.from({ length: 60 }, (_, user) =>
      requests(`192.0.2.${user}`, 60, (index) => login(index < 3)),
    )
    const lines = [
      requests('203.0.113.7', 2_000, (index) => ({ p: `/login?try=${index}`, s: 401 })),
      // A client that is as busy, and an office from which some log in wrong.
      requests('198.51.100.1', 2_000, () => ({ p: '/search', s: 200 })),
      requests('198.51.100.2', 2_000, (index) => login(index % 4 === 0)),
      ...users,
    ]
      .flat()
      .sort((one, other) => one.at - other.at)
    const [file = '', option = '', read] = logOf('guesses.log', lines)
    const args = [file, option, `${read},status=s`]
    const found = await suggested(args)
    const client = '@ip/203.0.113.7'
    expect(found.guesses).toEqual([{ client, route: 'POST /login', refused: 2_000 }])
    expect(found.outliers).toMatchObject([{ client, requests: 2_000 }])
    const { stdout } = await runSluice(['suggest', ...args, '-o', at('guesses.yaml')])
    expect(stdout).toContain('answered with 401 or 403')
    expect(stdout).toMatch(/@ip\/203\.0\.113\.7 +2,000 +POST \/login/)
    expect(readFileSync(at('guesses.yaml'), 'utf8')).toContain(`#   ips: ['203.0.113.7']`)
  })

  it.each([
    [24 * 3_600_000 - 60_000, false],
    [22 * 3_600_000, true],
  ])('takes a log of %i ms for shorter than a day: %j', async (spanMs, isShort) => {
    const { warnings } = await suggested(logOf('day.log', [{ at: 0 }, { at: spanMs }]))
    expect(warnings.join().includes('shorter than a day')).toBe(isShort)
  })

  it('separates identities by another key, named in the policy file', async () => {
    const requests = ['acme', 'acme', 'beta'].map((tenant, at) => ({ at, tenant }))
    const { stdout, exitCode } = await runSluice([
      ...['suggest', ...logOf('own.log', requests)],
      ...['--by', 'tenant=field:tenant', '-o', at('tenant.yaml')],
    ])
    expect(exitCode).toBe(0)
    expect(stdout).toContain('3 requests from 2 identities (tenant)')
    expect(stdout).toContain('only 2 identities')
    expect(stdout).toContain('@user/acme has more than half of all requests')
    const text = readFileSync(at('tenant.yaml'), 'utf8')
    expect(text).toMatch(/^key: tenant\npolicies:\n\s+- name: burst\n\s+limit: 2\n\s+window: 1s$/m)
    expect((await runSluice(['check', at('tenant.yaml')])).exitCode).toBe(0)
  })

  it.each([
    [['--touch', '60%'], '--touch 60% must be a share of the identities from 0% to 50%'],
    [['--by', 'tenant'], '--by tenant must be a name of the policy file'],
    [['--by', 'tenant=header:x-tenant'], 'no request of the log has the key'],
  ])('refuses %j with the fix', async (args, message) => {
    const { exitCode, stderr } = await runSluice(['suggest', start, ...args])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)])
  })
})

// biome-ignore lint/suspicious/noExplicitAny: tests read what docs/simulator.md shows
function suggested(args: readonly string[]): Promise<any> {
  return reported(['suggest', ...args])
}

describe('sluice diff', { timeout: 60_000 }, () => {
  const strict = 'policies:\n  - { name: sustained, limit: 14, window: 1m }\n'
  const tighter = write('tighter.yaml', strict)

  it('counts requests and clients that change sides, and exits with 1 beyond a bound', async () => {
    const args = ['diff', written, tighter, '--log', log, '--json']
    const kept = await runSluice([...args, '--fail-if', 'clients>19', '--fail-if', 'clients>0.95%'])
    expect([kept.exitCode, kept.stderr]).toEqual([0, ''])
    const found = JSON.parse(kept.stdout)
    // Each importer sends 30 requests in a minute, of which the new file lets 14 pass.
    expect(found).toMatchObject({
      requests: groundTruth.requests,
      clients: groundTruth.identities,
      clientsNewlyDenied: 19,
      clientsNewlyAllowed: 0,
    })
    const isNew = ({ deniedBefore }: { deniedBefore: number }) => deniedBefore === 0
    expect(found.mostDenied.filter(isNew)).toHaveLength(19)
    expect(found.deniedAfter - found.deniedBefore).toBe(found.newlyDenied - found.newlyAllowed)
    const failed = await runSluice([...args.slice(0, -1), '--fail-if', 'clients > 18'])
    expect(failed.exitCode).toBe(1)
    expect(failed.stdout).toContain('exceeded: clients > 18 (19)')
  })

  it('does not count a request that an obedient client would not send', async () => {
    const requests = Array.from({ length: 7 }, (_, index) => ({ at: index * 10 }))
    const files = [5, 1].map((limit) =>
      write(`limit-${limit}.yaml`, `policies: [{ name: one, limit: ${limit}, window: 1h }]\n`),
    )
    const logs = logOf('wait.log', requests)
    const args = ['diff', ...files, '--log', ...logs, '--clients', 'obedient']
    expect(await reported(args)).toMatchObject({
      ...{ deniedBefore: 1, deniedAfter: 1, newlyDenied: 1, newlyAllowed: 0 },
      ...{ heldBackBefore: 1, heldBackAfter: 5 },
    })
    expect((await runSluice(args)).stdout).toContain('not sent after')
  })

  it('handles whole seconds in a log with durations', async () => {
    const line = (took: string) => `192.0.2.7 [21/Nov/2026:10:00:00 +0000] "GET /" ${took}\n`
    const file = write('durations.log', line('0.120') + line('0.250'))
    const format = '$remote_addr [$time_local] "$request" $request_time'
    const { stdout } = await runSluice(['suggest', file, '--format', format])
    expect(stdout).toContain("the log's timestamps are whole seconds")
    expect(stdout).toContain('burst      2 / 10s')
  })

  it('reports unreadable lines and missing data', async () => {
    const line = '192.0.2.7 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 429 12 "-" "curl"\n'
    const odd = write('odd.log', `${line.repeat(2)}${'garbage\n'.repeat(500)}`)
    const changed = ['diff', written, tighter, '--log', odd]
    const { stdout } = await runSluice([...changed, '--fail-if', 'denied>1'])
    expect(stdout).toContain('Lines that cannot be read: 500\n')
    expect(stdout).toContain(`${odd}:3: `)
    expect(stdout).toContain('- 2 requests were already answered with 429')
    const found = await reported<SimulationReport>(changed)
    expect(found.log).toMatchObject({ requests: 2, unreadable: { lines: 500 } })
    expect((await runSluice(['suggest', odd])).stdout).toContain('Lines that cannot be read: 500\n')
  })

  it.each([
    [['--log', log, '--fail-if', 'delay>1'], '--fail-if delay>1 must be a bound on denied'],
    [['--log', '-'], 'the log is read twice'],
    [[], `required option '--log <files...>' not specified`],
  ])('refuses %j with the fix', async (args, message) => {
    const { exitCode, stderr } = await runSluice(['diff', written, tighter, ...args])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)])
  })
})
