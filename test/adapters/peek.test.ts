import type { CanActivate, ExecutionContext } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { rateLimit as expressLimit } from '@sluice/express'
import { rateLimitPlugin } from '@sluice/fastify'
import { rateLimit as fetchLimit } from '@sluice/fetch'
import { rateLimit as honoLimit } from '@sluice/hono'
import { type Peeked, tiers } from '@sluice/http'
import { rateLimit as koaLimit } from '@sluice/koa'
import { tiers as nestTiers, RateLimitGuard, RateLimitModule } from '@sluice/nest'
import express from 'express'
import Fastify from 'fastify'
import { type Context, Hono } from 'hono'
import Koa from 'koa'
import { expect, it } from 'vitest'
import { ask } from './ask.ts'
import { portOf } from './drivers/driver.ts'
import { everywhere, start } from './nest-app.ts'

/** Asks an application behind a limiter, or peeks at what the same request would get. */
type Ask = (what: '/' | '/quota', headers: Record<string, string>) => Promise<unknown>

interface WithHeaders {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

const table = { pro: 100, default: 10 }
const limit = tiers(table, ({ headers }: WithHeaders) => headers['x-plan']?.toString())
/** Without a name, so that the place of the limiter is part of the key. */
const options = { limit, window: '1h' } as const

const info = { remoteAddress: '203.0.113.9' }

async function served(server: Parameters<typeof portOf>[0]): Promise<Ask> {
  const port = await portOf(server)
  return async (path, headers) => {
    const { body } = await ask(port, path, { headers })
    return path === '/' ? undefined : JSON.parse(body)
  }
}

const apps: Readonly<Record<string, () => Promise<Ask>>> = {
  async express() {
    const app = express()
    const limited = expressLimit(options)
    app.get('/quota', async (req, res) => void res.json(await limited.peek(req, res)))
    app.use(limited)
    app.get('/', (_req, res) => void res.send('hello'))
    return served(app.listen(0, '127.0.0.1'))
  },

  async koa() {
    const app = new Koa()
    const limited = koaLimit(options)
    app.use(async (context, next) => {
      if (context.path !== '/quota') return next()
      context.body = await limited.peek(context)
    })
    app.use(limited).use((context) => {
      context.body = 'hello'
    })
    return served(app.listen(0, '127.0.0.1'))
  },

  async fastify() {
    const app = Fastify()
    await app.register(rateLimitPlugin, options)
    app.get('/quota', { config: { rateLimit: false } }, (request, reply) =>
      app.peekRateLimit(request, reply),
    )
    app.get('/', async () => 'hello')
    await app.ready()
    return served(app.server.listen(0, '127.0.0.1'))
  },

  async hono() {
    const app = new Hono()
    const limit = tiers(table, (context: Context) => context.req.header('x-plan'))
    const limited = honoLimit({ ...options, limit })
    app.get('/quota', async (context) => context.json(await limited.peek(context)))
    app.use(limited).get('/', (context) => context.text('hello'))
    const env = { incoming: { socket: info } }
    return async (path, headers) => {
      const response = await app.request(path, { headers }, env)
      return path === '/' ? undefined : response.json()
    }
  },

  async fetch() {
    const limit = tiers(table, (request: Request) => request.headers.get('x-plan'))
    const limited = fetchLimit({ ...options, limit })
    const handler = limited(async () => new Response('hello'))
    return async (path, headers) => {
      const request = new Request('http://localhost/', { headers })
      if (path === '/') await handler(request, info)
      return path === '/' ? undefined : limited.peek(request, info)
    }
  },

  async nest() {
    let peeked: Peeked | undefined
    const peekFirst = (guard: RateLimitGuard): CanActivate => ({
      async canActivate(context) {
        peeked = await guard.peek(context)
        return context.switchToHttp().getRequest().headers['x-quota'] === undefined
      },
    })
    const first = { provide: APP_GUARD, useFactory: peekFirst, inject: [RateLimitGuard] }
    const plan = (context: ExecutionContext) =>
      context.switchToHttp().getRequest().headers['x-plan']
    const limits = RateLimitModule.forRoot({ ...options, limit: nestTiers(table, plan) })
    const app = await start({ limits, providers: [first, everywhere] })
    return async (path, headers) => {
      await app.ask('/', { headers: path === '/' ? headers : { ...headers, 'x-quota': '1' } })
      return peeked
    }
  },
}

it.each(Object.entries(apps))('a limiter of %s peeks as it would count', async (_, open) => {
  const visit = await open()
  const pro = { 'x-plan': 'pro' }
  for (let i = 0; i < 12; i += 1) await visit('/', pro)
  for (let i = 0; i < 2; i += 1) {
    const found = { allowed: true, outcomes: [{ limit: 100, used: 12, remaining: 88 }] }
    expect(await visit('/quota', pro)).toMatchObject(found)
  }
  expect(await visit('/quota', {})).toMatchObject({ allowed: false, outcomes: [{ limit: 10 }] })
})
