import type { RequestListener } from 'node:http'
import fastifyRateLimit from '@fastify/rate-limit'
import { createFetch, type WaitEvent } from '@sluice/client'
import { rateLimit } from '@sluice/express'
import { rateLimitPlugin } from '@sluice/fastify'
import type { Dialect } from '@sluice/headers'
import express, { type RequestHandler } from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import fastify, { type FastifyInstance } from 'fastify'
import { afterAll, describe, expect, it } from 'vitest'
import { serve } from '../support/serve.ts'

const closers: (() => Promise<void>)[] = []

afterAll(async () => {
  for (const close of closers.splice(0)) await close()
})

async function listen(handler: RequestListener): Promise<string> {
  const { url, close } = await serve(handler)
  closers.push(close)
  return url
}

/** Starts a server. @returns its URL, and the statuses that it has answered */
function expressWith(limit: () => RequestHandler) {
  return async () => {
    const statuses: number[] = []
    const app = express()
    app.use((_request, response, next) => {
      response.on('finish', () => statuses.push(response.statusCode))
      next()
    })
    app.get('/', limit(), (_request, response) => void response.send('ok'))
    return { url: await listen(app), statuses }
  }
}

function fastifyWith(register: (app: FastifyInstance) => PromiseLike<unknown>) {
  return async () => {
    const statuses: number[] = []
    const app = fastify({ forceCloseConnections: true })
    app.addHook('onResponse', async (_request, reply) => {
      statuses.push(reply.statusCode)
    })
    await register(app)
    app.get('/', async () => 'ok')
    closers.push(() => app.close())
    return { url: `${await app.listen({ port: 0, host: '127.0.0.1' })}/`, statuses }
  }
}

const ours = { limit: 3, window: '2s' } as const
const sluice = (own: { headers?: Dialect[] }) => expressWith(() => rateLimit({ ...ours, ...own }))
const others = { limit: 3, windowMs: 2000 }
const ofExpress = (standardHeaders: 'draft-6' | 'draft-7' | 'draft-8') =>
  expressWith(() => expressRateLimit({ ...others, standardHeaders, legacyHeaders: false }))
const ofFastify = (own: object = {}) =>
  fastifyWith((app) => app.register(fastifyRateLimit, { max: 3, timeWindow: 2000, ...own }))

const servers = Object.entries({
  '@sluice/express': sluice({}),
  '@sluice/express, no headers but Retry-After': sluice({ headers: [] }),
  '@sluice/fastify': fastifyWith((app) => app.register(rateLimitPlugin, ours)),
  'express-rate-limit': expressWith(() => expressRateLimit(others)),
  'express-rate-limit, draft-6': ofExpress('draft-6'),
  'express-rate-limit, draft-7': ofExpress('draft-7'),
  'express-rate-limit, draft-8': ofExpress('draft-8'),
  '@fastify/rate-limit': ofFastify(),
  '@fastify/rate-limit, draft-6 headers': ofFastify({ enableDraftSpec: true }),
})

describe('over real sockets', () => {
  it.concurrent.each(servers)('one refusal is enough for %s', async (_, start) => {
    const { url, statuses } = await start()
    const events: WaitEvent[] = []
    const fetch = createFetch({ observers: { onWait: (event) => events.push(event) } })
    // On a busy machine the window may be over before the fourth call.
    for (let call = 0; call < 4 || (events.length === 0 && call < 40); call++) {
      const response = await fetch(url)
      expect([response.status, await response.text()]).toEqual([200, 'ok'])
    }
    expect(statuses.slice(-3)).toEqual([200, 429, 200])
    expect(statuses.filter((status) => status === 429)).toHaveLength(1)
    expect(events).toMatchObject([{ reason: 'server', tries: 1 }])
    expect(events[0]?.waitMs).toBeGreaterThan(900)
    expect(events[0]?.waitMs).toBeLessThan(3500)
  })

  const telling = servers.filter(([name]) => !name.includes('no headers'))
  it.concurrent.each(telling)('pacing spares refusals of %s', async (_, start) => {
    const { url, statuses } = await start()
    const fetch = createFetch({ pace: true })
    await Promise.all(Array.from({ length: 5 }, async () => (await fetch(url)).text()))
    // Without pacing two are refused; a machine that is held up for long may squeeze two calls together.
    expect(statuses.filter((status) => status === 200)).toHaveLength(5)
    expect(statuses.length).toBeLessThanOrEqual(6)
  })

  it('a request that costs more than a whole limit is handed out at once', async () => {
    const points = rateLimit({ name: 'graphql', limit: 100, window: '1m', cost: () => 150 })
    const { url, statuses } = await expressWith(() => points)()
    const response = await createFetch()(url)
    expect(await response.json()).toMatchObject({ 'violated-policies': ['graphql'] })
    expect(statuses).toEqual([429])
  })
})
