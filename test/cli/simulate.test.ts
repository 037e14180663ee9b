import type { SimulationReport } from '@sluice/cli'
import { describe, expect, it, vi } from 'vitest'
import { reported, runSluice } from './run-sluice.ts'
import { testFiles } from './test-files.ts'

const { write } = testFiles('simulate')
const begin = Date.parse('2026-11-21T10:00:00Z')
const json = ['--format', 'json', '--time', 'start']
const fields = ['--fields', 'time=t,ip=ip,method=m,path=p,status=s,duration=d']

interface Line {
  /** In ms after the begin. */
  readonly at: number
  readonly [field: string]: unknown
}

const one = { name: 'one', limit: 1, window: '1m' }
/** Requests that differ by nothing but their times. */
const atTimes = (...times: readonly number[]): readonly Line[] => times.map((at) => ({ at }))

describe('sluice simulate', () => {
  it("shows a client's first and longest denial, and the hours", async () => {
    const hour = 3_600_000
    // Refused at 1 s and from 61.5 to 61.9 s, and in the third hour.
    const times = [0, 1_000, 61_000, 61_500, 61_900, 2 * hour, 2 * hour + 1]
    const lines = [...atTimes(...times), { at: 5, ip: '192.0.2.8' }]
    const report = await simulated({ policies: [one] }, lines)
    expect(report.totals).toMatchObject({ requests: 8, denied: 4, clients: 2, clientsDenied: 1 })
    expect(report.deniedClients).toEqual([
      {
        ...{ client: '@ip/192.0.2.7', requests: 7, denied: 4, policies: ['one'] },
        ...{ firstDenialMs: begin + 1_000, longestDenialMs: 400 },
        longestDenialAtMs: begin + 61_500,
      },
    ])
    expect(report.hours.map(({ denied, clientsDenied }) => [denied, clientsDenied])).toEqual([
      [3, 1],
      [0, 0],
      [1, 1],
    ])
    expect(report.policies).toMatchObject([
      { name: 'one', checked: 8, denied: 4, identitiesDenied: 1, firstDenialMs: begin + 1_000 },
    ])
    // The longest ones: of the client, and of its policy and route.
    expect([...report.policies, ...report.routes]).toMatchObject([
      { longestDenialMs: 400 },
      { route: '(other)', firstDenialMs: begin + 1_000, longestDenialMs: 400 },
    ])
  })

  it('says that overrides with an end are those of today', async () => {
    const until = '2026-11-20T00:00:00Z'
    const overrides = [{ policy: 'one', key: { ip: '192.0.2.7' }, limit: 5, until }]
    const report = await simulated({ policies: [one], overrides }, atTimes(0, 1))
    expect(report.notes.join()).toContain('overrides with an end (until), of which the file has 1,')
  })

  it('counts near misses, rules of the file, routes of the application, and skipped requests', async () => {
    const file = {
      policies: [{ name: 'five', limit: 5, window: '1m' }],
      routes: {
        '/health': false,
        'POST /login': { policies: [{ name: 'login', limit: 1, window: '1m' }] },
      },
    }
    const lines = [
      ...[0, 1, 2, 3, 4, 5].map((at) => ({ at, p: `/users/${at}` })),
      ...[6, 7].map((at) => ({ at, m: 'POST', p: '/login' })),
      { at: 8, p: '/health' },
    ]
    const report = await simulated(file, lines, ['--route', 'GET /users/:id'])
    expect(report.totals).toMatchObject({ allowed: 6, denied: 2, skipped: 1 })
    expect(report.policies).toMatchObject([
      { name: 'five', nearMisses: 1, denied: 1 },
      { name: 'login', nearMisses: 1, denied: 1 },
    ])
    expect(report.routes).toMatchObject([
      { route: 'GET /users/:id', requests: 6, denied: 1 },
      { route: 'POST /login', requests: 2, denied: 1 },
      { route: '/health', requests: 1, denied: 0 },
    ])
  })

  it('names the cause of refusals without a policy', async () => {
    const quota = { policies: [{ name: 'one', limit: 9, window: '1m' }] }
    const blocked = await simulated({ ...quota, block: { ips: ['192.0.2.7'] } }, atTimes(0, 1))
    expect(blocked.deniedClients).toMatchObject([{ denied: 2, policies: ['block'] }])
    const strict = { ...quota, key: 'tenant', onMissingKey: 'deny' }
    const missing = await simulated(strict, atTimes(0), ['--key', 'tenant=field:tenant'])
    expect(missing.deniedClients).toMatchObject([{ policies: ['onMissingKey'] }])
    const queue = { name: 'queue', algorithm: 'leaky-bucket', limit: 1, window: '1m', queue: 5 }
    const held = await simulated({ policies: [queue], maxWaiting: 1 }, atTimes(0, 1, 2))
    expect(held.deniedClients).toMatchObject([{ policies: ['maxWaiting'] }])
  })

  it('shows limits that are not rates correctly', async () => {
    const file = {
      policies: [
        { name: 'flight', algorithm: 'concurrency', limit: 2 },
        { name: 'burst', limit: 5, window: '10s' },
      ],
      penalty: { after: 4, within: '2s', for: '500ms' },
    }
    const { stdout } = await run(file, atTimes(0))
    expect(stdout).toMatch(/^flight +2 at once /m)
    expect(stdout).toMatch(/^burst +5 \/ 10s /m)
  })

  it('reports what policies in shadow would refuse, and refuses nothing', async () => {
    const file = { policies: [{ ...one, name: 'trial', mode: 'shadow' }] }
    const { totals, policies } = await simulated(file, atTimes(0, 1, 2))
    expect(totals).toMatchObject({ allowed: 3, denied: 0, shadowDenied: 2 })
    expect(policies).toMatchObject([{ name: 'trial', mode: 'shadow', checked: 3, denied: 2 }])
  })

  it('makes obedient clients wait as instructed', async () => {
    const file = { policies: [{ ...one, window: '10s' }] }
    const lines = atTimes(0, 1_000, 2_000, 9_999, 10_000, 10_001)
    const recorded = await simulated(file, lines)
    expect(recorded.totals).toMatchObject({ allowed: 2, denied: 4, heldBack: 0 })
    const obedient = await simulated(file, lines, ['--clients', 'obedient'])
    expect(obedient).toMatchObject({ clients: 'obedient' })
    expect(obedient.totals).toMatchObject({ allowed: 2, denied: 2, heldBack: 2 })
  })

  it('replays requests in flight and queues by the durations of the log', async () => {
    const flight = { policies: [{ name: 'flight', algorithm: 'concurrency', limit: 1 }] }
    const lines = [{ at: 0, d: 300_000 }, { at: 200_000 }, { at: 300_000 }]
    // A lease of a minute is renewed for as long as the request runs.
    expect((await simulated(flight, lines)).totals).toMatchObject({ allowed: 2, denied: 1 })
    const without = await simulated(
      flight,
      lines.map(({ at }) => ({ at, d: undefined })),
    )
    expect(without.totals.denied).toBe(0)
    expect(without.notes.join()).toContain(`3 requests have no duration, so 'flight' assumes`)
    const queue = { name: 'queue', algorithm: 'leaky-bucket', limit: 1, window: '1s', queue: 2 }
    const held = await simulated({ policies: [queue] }, atTimes(0, 1, 2, 3))
    expect(held.totals).toMatchObject({ allowed: 3, delayed: 2, denied: 1 })
  })

  it("takes the file's keys and functions from the log, and states its assumptions", async () => {
    const file = {
      key: 'tenant',
      cost: { by: 'weight' },
      refundWhen: { by: 'failed' },
      policies: [{ ...one, limit: { tiers: { pro: 3 }, by: 'plan', default: 1 } }],
    }
    const lines = ['acme', 'acme', 'acme', 'beta', 'beta'].map((tenant, at) => ({
      ...{ at, tenant, plan: tenant === 'acme' ? 'pro' : 'free', weight: 2, s: 500 },
    }))
    const tenant = ['--key', 'tenant=field:tenant']
    const assumed = await simulated(file, lines, tenant)
    expect(assumed.totals).toMatchObject({ denied: 3, clients: 2 })
    expect(assumed.notes.slice(0, 3).map((note) => note.split(', which')[0])).toEqual([
      "'weight' in code computes the cost of a request",
      "'failed' in code computes responses to refund",
      "'plan' in code computes the tier of a request",
    ])
    const values = ['weight=field:weight', 'plan=field:plan', 'failed=status:500']
    const given = values.flatMap((value) => ['--value', value])
    const known = await simulated(file, lines, [...tenant, ...given])
    // Each response is refunded before the next request, and two units are more than `beta` may have.
    expect(known.totals).toMatchObject({ allowed: 3, denied: 2, clientsDenied: 1 })
    expect(known.notes).toEqual([])
  })

  it('keeps timers of its process running', async () => {
    let timer = setTimeout(function again() {
      timer = setTimeout(again, 1)
    }, 1)
    try {
      const report = await simulated({ policies: [one] }, atTimes(0, 5))
      expect(report.totals).toMatchObject({ allowed: 1, denied: 1 })
    } finally {
      clearTimeout(timer)
    }
  })

  it.each([
    { headers: ['draft-6'] },
    { headers: [] },
    { headers: ['draft-11', 'legacy'], exposeHeaders: true, hideOnRedirect: true },
    { statusCode: 420, message: 'slow down', onMissingKey: 'deny', failureMode: 'open' },
    { allow: { ips: ['198.51.100.1'] }, block: { ips: ['198.51.100.2'] }, maxWaiting: 5 },
  ])('takes a file with %j', async (options) => {
    const { totals } = await simulated({ ...options, policies: [one] }, atTimes(0, 1))
    expect(totals).toMatchObject({ allowed: 1, denied: 1 })
  })

  it.each(['field:remote_user', 'header:x-user'])('says that no request has %s', async (given) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const overrides = [{ policy: 'one', key: { user: 'acme' }, limit: 5 }]
    const file = { key: 'user', policies: [one], overrides }
    const lines = atTimes(0, 1, 2, 3, 4)
    const { notes, totals } = await simulated(file, lines, ['--key', `user=${given}`])
    expect(notes).toEqual([
      `no request has a value for --key user=${given}; check its name in the log, or pass --key user=ip`,
    ])
    expect(totals.denied).toBe(4)
    expect(warn).not.toHaveBeenCalled()
  })

  it('refuses a key of the file that the log does not give, with the name', async () => {
    const { exitCode, stderr } = await run({ key: 'tenant', policies: [one] }, atTimes(0))
    expect(exitCode).toBe(2)
    expect(stderr).toContain(`name a key 'tenant'`)
    expect(stderr).toContain('--key tenant=header:')
    expect(stderr).toContain('or --key tenant=ip if the log has neither')
  })

  it('shows a progress bar on a terminal alone', async () => {
    const words = wordsOf({ policies: [one] }, atTimes(0))
    const { stderr } = await runSluice(words, { isTTY: true })
    expect(stderr).toMatch(/100% of \d+ B/)
    expect(stderr.endsWith('\r\u001b[2K')).toBe(true)
    expect((await runSluice(words)).stderr).toBe('')
  })
})

function wordsOf(file: object, lines: readonly Line[], args: readonly string[] = []) {
  const policies = write('sluice.yaml', JSON.stringify(file))
  const written = lines.map(({ at, ...rest }) =>
    JSON.stringify({ ip: '192.0.2.7', m: 'GET', p: '/', s: 200, d: 0, ...rest, t: begin + at }),
  )
  const log = write('access.log', written.join('\n'))
  return ['simulate', log, '-p', policies, ...json, ...fields, ...args]
}

type Words = Parameters<typeof wordsOf>
const run = (...words: Words) => runSluice(wordsOf(...words))
const simulated = (...words: Words) => reported<SimulationReport>(wordsOf(...words))
