import { all, ip, rateLimit, route, tiers, user } from '@sluice/express'
import express, { type RequestHandler } from 'express'
import request from 'supertest'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { repeated } from '../support/in-turn.ts'
import { hello, limitedBy, statuses } from './fastify-app.ts'

let warned: () => string[]

const account = user(() => 'ada')

beforeEach(() => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  warn.mockClear()
  warned = () => warn.mock.calls.map(([text]) => String(text))
})

async function ask(handlers: RequestHandler[], count: number): Promise<number[]> {
  const app = express()
  app.use(...handlers, (_request, response) => void response.send('ok'))
  return repeated(count, async () => (await request(app).get('/')).status)
}

describe('a warning, once', () => {
  it('of a limiter that is made for each request', async () => {
    const perRequest: RequestHandler = (req, res, next) =>
      rateLimit({ limit: 2, window: '1m' })(req, res, next)

    expect(await ask([perRequest], 4)).toEqual([200, 200, 200, 200])
    expect(warned()).toEqual([
      expect.stringMatching(/^sluice: rateLimit was called while handling a request/),
    ])
  })

  it('of a limiter that a request passes twice', async () => {
    const limit = rateLimit({ limit: 4, window: '1m' })
    expect(await ask([limit, limit], 3)).toEqual([200, 200, 429])
    expect(warned()).toEqual([
      expect.stringMatching(/passed the same limiter twice \(policy 'default'\)/),
    ])
  })

  it('of a key that is always missing, in Express and in Fastify', async () => {
    const key = user(() => undefined)
    expect(await ask([rateLimit({ limit: 9, window: '1m', key })], 6)).not.toContain(429)
    const app = await limitedBy({ limit: 9, window: '1m', key: () => undefined })
    app.get('/', hello)
    await statuses(app, 6)

    expect(warned()).toEqual([
      expect.stringMatching(/no key for any of the first 3 requests.*hook: 'preHandler'/),
    ])
  })

  it('of one name with two limits in two places, not of one limit or one place', async () => {
    const made = (limit: number) => rateLimit({ name: 'shared', limit, window: '1m' })
    made(5)
    made(6)
    rateLimit({ name: 'shared', limit: 5, window: '1m' })
    expect(warned()).toEqual([])

    rateLimit({ name: 'api', limit: 100, window: '1m' })
    const routes = { 'POST /login': { name: 'api', limit: 5, window: '1m' } } as const
    rateLimit({ limit: 9, window: '1m', routes })

    const place = String.raw`\S*mistakes\.test\.ts:\d+:\d+`
    const both = `100 in rateLimit \\(${place}\\) and 5 in routes\\['POST /login'\\] \\(${place}\\)`
    expect(warned()).toEqual([
      expect.stringMatching(new RegExp(`the policy name 'api' has two limits, ${both}`)),
    ])
  })

  it('of a counted preflight, unless that was configured', async () => {
    const one = { limit: 1, window: '1m' } as const
    const headers = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
    const send = (chosen: object) =>
      request(express().use(rateLimit({ ...one, ...chosen })))
        .options('/')
        .set(headers)
    await send({ preflights: 'count' })
    await send({ preflights: 'pass' })
    await send({ skip: () => true })
    expect(warned()).toEqual([])
    await send({})
    await send({})

    expect(warned()).toEqual([
      expect.stringMatching(/CORS middleware before the limiter.*preflights: 'pass'/),
    ])
  })

  it('of a route that counts only pairs instead of addresses', () => {
    const login = (options: object) =>
      rateLimit({ limit: 9, window: '1m', routes: { 'POST /login': options } })
    const pair = { limit: 5, window: '1m', key: all(account, ip()) } as const
    login({ ...pair, combine: 'add' })
    login({ policies: [pair, { limit: 9, window: '1m', key: ip() }] })
    login({ ...pair, key: all(account, route()) })
    login({ ...pair, key: all(route(), ip()) })
    login({ ...pair, key: account })
    rateLimit({ limit: 9, window: '1m', key: account, routes: { '/login': pair } })
    rateLimit({ routes: { '/login': pair } })
    expect(warned()).toEqual([])

    login(pair)
    expect(warned()).toEqual([
      expect.stringMatching(/^sluice: routes\['POST \/login'\] .* write combine: 'add', or/),
    ])
  })

  it('of an unknown tier, with its name', async () => {
    const limit = tiers({ free: 5, default: 3 }, () => 'premium')
    await ask([rateLimit({ limit, window: '1m' })], 2)
    expect(warned()).toEqual([expect.stringContaining("there is no tier 'premium'")])
  })
})

it('no warning of two limiters, an occasional key, or a limiter on two routes', async () => {
  const many = { limit: 50, window: '1m' } as const
  let asked = 0
  const key = user(() => (++asked === 2 ? 'ada' : undefined))
  await ask([rateLimit({ ...many, key }), rateLimit(many)], 8)
  const limit = rateLimit(many)
  const app = express()
  for (const path of ['/a', '/b']) {
    app.get(path, limit, (_request, response) => void response.send('ok'))
  }
  for (const path of ['/a', '/b']) await request(app).get(path)

  expect(warned()).toEqual([])
})
