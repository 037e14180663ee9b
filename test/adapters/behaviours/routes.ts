import { memoryStore } from '@sluice/core'
import { route } from '@sluice/http'
import { expect, it, vi } from 'vitest'
import { scaled } from '../../support/scale.ts'
import type { App, Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'
import type { Limits, Route } from '../drivers/driver.ts'

const of = (limit: number, more: object = {}) => ({ limit, window: '1m', ...more }) as const

const routes: readonly Route[] = [
  { path: '/' },
  { path: '/login', method: 'POST' },
  { path: '/login' },
  { path: '/search/:q' },
  { path: '/report/:id' },
  { path: '/export' },
  { path: '/health' },
]

/** Requests that are asked in turn, and how many of them pass. */
type Counted = readonly (readonly [question: string, asked: number, passed: number])[]

/** What applies to a request by its method and path. */
export const routeRules: Behaviour = ({ start }) => {
  it('lets HEAD and GET share the quota of a route', async () => {
    const app = await start({ routes: [{ path: '/x', limits: { limit: 2, window: '1m' } }] })

    expect(await app.statuses(1, '/x', { method: 'HEAD' })).toEqual([200])
    expect(await app.statuses(2, '/x')).toEqual([200, 429])
    expect(await app.statuses(1, '/x', { method: 'HEAD' })).toEqual([429])
  })

  const app = (limits: Limits) => start({ limits: [limits], routes })

  async function count(subject: App, counted: Counted): Promise<Counted> {
    const found: [string, number, number][] = []
    for (const [question, asked] of counted) {
      const [method = 'GET', path = '/'] = question.split(' ')
      const statuses = await subject.statuses(asked, path, { method })
      found.push([question, asked, statuses.filter((status) => status !== 429).length])
    }
    return found
  }

  const cases: readonly (readonly [name: string, limits: Limits, counted: Counted])[] = [
    [
      'takes the place of the limits around it',
      { ...of(3), routes: { 'POST /login': of(1) } },
      [
        ['POST /login', 3, 1],
        ['GET /', 5, 3],
        ['GET /login', 1, 0],
      ],
    ],
    [
      'may be looser than the limits around it',
      { ...of(1), routes: { 'GET /search/:q': of(4) } },
      [
        ['GET /search/a', 2, 2],
        ['GET /search/b', 3, 2],
        ['GET /', 2, 1],
      ],
    ],
    [
      'is added to the limits around it: all or nothing',
      { ...of(4), routes: { 'POST /login': { ...of(2), combine: 'add' } } },
      [
        ['POST /login', 3, 2],
        ['GET /', 3, 2],
        ['POST /login', 1, 0],
      ],
    ],
    [
      'that is added is refused by the limits around it too',
      { ...of(2), routes: { 'POST /login': { ...of(5), combine: 'add' } } },
      [
        ['GET /', 2, 2],
        ['POST /login', 1, 0],
      ],
    ],
    [
      'leaves requests alone where it is false',
      { ...of(1), routes: { '/health': false } },
      [
        ['GET /health', 4, 4],
        ['GET /', 2, 1],
        ['GET /health', 1, 1],
      ],
    ],
    [
      'without a method holds for all that have none of their own, counted together',
      { ...of(9), routes: { '/login': of(2), 'GET /login': of(1) } },
      [
        ['GET /login', 2, 1],
        ['POST /login', 1, 1],
        ['PUT /login', 2, 1],
      ],
    ],
    [
      'counts HEAD as GET',
      { ...of(9), routes: { 'GET /search/:q': of(2) } },
      [
        ['HEAD /search/a', 1, 1],
        ['GET /search/b', 2, 1],
        ['HEAD /search/c', 1, 0],
      ],
    ],
    [
      'gives way to a more specific one',
      { ...of(9), routes: { '/*': of(3), 'GET /search/:q': of(2), 'GET /search/hot': of(1) } },
      [
        ['GET /search/hot', 2, 1],
        ['GET /search/cold', 3, 2],
        ['GET /', 2, 2],
        ['GET /nowhere', 2, 1],
      ],
    ],
    [
      'by name is one quota with all that name it',
      {
        ...of(9),
        profiles: { expensive: of(3) },
        routes: { 'GET /search/:q': 'expensive', 'GET /export': { policies: ['expensive'] } },
      },
      [
        ['GET /search/a', 2, 2],
        ['GET /export', 2, 1],
        ['GET /search/b', 1, 0],
        ['GET /', 1, 1],
      ],
    ],
    [
      'by name at another cost draws on the same quota',
      {
        ...of(99),
        profiles: { expensive: of(10) },
        routes: {
          'GET /search/:q': 'expensive',
          'GET /export': { policies: ['expensive'], cost: 4 },
        },
      },
      [
        ['GET /export', 3, 2],
        ['GET /search/a', 3, 2],
      ],
    ],
    [
      'keeps one of several policies around it by naming it',
      {
        policies: [of(5, { name: 'sustained' }), of(2, { name: 'burst', window: '1s' })],
        routes: { 'GET /export': { policies: ['sustained'] } },
      },
      [
        ['GET /export', 3, 3],
        ['GET /', 3, 2],
        ['GET /export', 1, 0],
      ],
    ],
    [
      'keeps the only policy around it beside one of its own, by naming it',
      {
        ...of(3, { name: 'api' }),
        routes: { 'GET /export': { policies: ['api', of(1)] } },
      },
      [
        ['GET /export', 2, 1],
        ['GET /', 3, 2],
      ],
    ],
    [
      'with a new cost alone counts the policies around it for the route',
      { ...of(4), routes: { 'GET /export': { cost: 2 } } },
      [
        ['GET /export', 3, 2],
        ['GET /', 5, 4],
      ],
    ],
    [
      'with a new cost alone draws on a named policy around it',
      { ...of(4, { name: 'api' }), routes: { 'GET /export': { cost: 2 } } },
      [
        ['GET /export', 1, 1],
        ['GET /', 3, 2],
      ],
    ],
    [
      'needs no limits around it',
      { routes: { 'POST /login': of(1) } },
      [
        ['POST /login', 2, 1],
        ['GET /', 9, 9],
      ],
    ],
    [
      'two private ones alike count apart',
      { ...of(9), routes: { 'GET /export': of(1), 'POST /login': of(1) } },
      [
        ['GET /export', 2, 1],
        ['POST /login', 2, 1],
      ],
    ],
  ]

  it.each(cases)('a rule %s', async (_, limits, counted) => {
    expect(await count(await app(limits), counted)).toEqual(counted)
  })

  it('tells of the limits that apply, under names of their own', async () => {
    const subject = await app({
      ...of(100),
      headers: ['draft-11'],
      routes: { 'POST /login': { ...of(5), combine: 'add' }, 'GET /export': of(7) },
    })

    expect(limitFields(await subject.ask('/login', { method: 'POST' }))).toEqual({
      'ratelimit-policy': '"default";q=100;w=60, "default-POST-login";q=5;w=60',
      ratelimit: '"default";r=99;t=60, "default-POST-login";r=4;t=60',
    })
    expect(limitFields(await subject.ask('/export'))).toEqual({
      'ratelimit-policy': '"default-GET-export";q=7;w=60',
      ratelimit: '"default-GET-export";r=6;t=60',
    })
    expect(limitFields(await subject.ask('/'))).toMatchObject({ ratelimit: '"default";r=98;t=60' })
  })

  it('inherits what it leaves out, and replaces what it gives', async () => {
    const key = vi.fn(() => 'ada')
    const subject = await app({
      ...of(100),
      key,
      statusCode: 420,
      message: 'slow down',
      routes: { 'POST /login': { ...of(0), message: 'no more tries' }, 'GET /export': of(0) },
    })

    const login = await subject.ask('/login', { method: 'POST' })
    const report = await subject.ask('/export')

    expect([login.status, login.body]).toEqual([420, 'no more tries'])
    expect([report.status, report.body]).toEqual([420, 'slow down'])
    expect(key).toHaveBeenCalledTimes(2)
  })

  it('calls a handler of its own', async () => {
    const subject = await app({
      ...of(100),
      reply: () => 'mine',
      routes: { 'POST /login': of(0) },
    })

    const answer = await subject.ask('/login', { method: 'POST' })

    expect([answer.status, answer.body]).toEqual([418, 'mine'])
  })

  it('has its pattern for a label, so that all its paths are one key', async () => {
    const keys = new Set<string>()
    const store = memoryStore()
    const subject = await app({
      ...of(100_000, { store, key: route() }),
      observers: { onDecision: ({ checks }) => void keys.add(checks[0]?.key ?? '') },
      routes: { 'GET /report/:id': of(100_000) },
    })

    for (let i = 0; i < scaled(30, 200); i += 1) await subject.ask(`/report/${i}`)

    expect([...keys]).toEqual(['@scope/15/GET /report/:id/@route/GET /report/:id'])
    expect(store.size).toBe(1)
  })

  it('skips within a rule, and counts no preflight where they pass', async () => {
    const preflight = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
    const subject = await app({
      ...of(9, { preflights: 'pass' }),
      routes: { '/login': { ...of(1), skip: ({ headers }) => headers['x-skip'] === 'yes' } },
    })

    for (let i = 0; i < 3; i += 1) {
      await subject.ask('/login', { method: 'OPTIONS', headers: preflight })
    }
    const skipped = { headers: { 'x-skip': 'yes' } }
    expect(await subject.statuses(2, '/login', skipped)).toEqual([200, 200])
    expect(await subject.statuses(2, '/login')).toEqual([200, 429])
  })
}
