import type { Server } from 'node:http'
import { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createAdaptorServer } from '@hono/node-server'
import { ForbiddenException, Get, StreamableFile } from '@nestjs/common'
import { rateLimit as fetchLimit } from '@sluice/fetch'
import { rateLimit } from '@sluice/hono'
import { rateLimit as koaLimit } from '@sluice/koa'
import { RateLimitModule, type RateLimitModuleOptions } from '@sluice/nest'
import { Hono, type MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import Koa from 'koa'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../support/until.ts'
import { counted, inFlight } from './counted.ts'
import { portOf } from './drivers/driver.ts'
import { controllerOf, start } from './nest-app.ts'

const one = { limit: 1, window: '1m', headers: ['draft-11'] } as const
const spent = '"default";r=0;t=60'
const env = { incoming: { socket: { remoteAddress: '203.0.113.9' } } }
const info = { remoteAddress: '203.0.113.9' }

/** The statuses that requests are settled by. */
function settling() {
  const statuses: number[] = []
  const chargeWhen = (_: unknown, { status }: { status: number }) => statuses.push(status) > 0
  return { statuses, chargeWhen }
}

/** What a WebSocket library of an edge runtime returns: Node makes no Response of 101. */
function upgraded(): Response {
  const values = { status: { value: 101 }, webSocket: { value: {} } }
  return Object.defineProperties(new Response(null), values)
}

describe('a limiter of Hono', () => {
  const replacing: MiddlewareHandler = async (c, next) => {
    await next()
    c.res = new Response('other', { headers: { 'x-other': '1' } })
  }

  it('passes a protocol upgrade through unchanged, and ends its lease', async () => {
    const { options, used } = counted(inFlight)
    const response = upgraded()
    const app = new Hono().use(rateLimit(options)).get('/', () => response)
    expect(await app.request('/', { headers: { upgrade: 'websocket' } }, env)).toBe(response)
    expect(await used()).toBe(0)
  })

  it('keeps its headers if middleware replaces the response', async () => {
    const app = new Hono().use(replacing, rateLimit(one)).get('/', (c) => c.text('hello'))
    const found = await app.request('/', {}, env)
    expect([found.headers.get('ratelimit'), found.headers.get('x-other')]).toEqual([spent, '1'])
  })

  it('ends a lease if outer middleware replaces the response', async () => {
    const { options, used } = counted(inFlight)
    const app = new Hono().use(replacing, rateLimit(options)).get('/', (c) => c.text('hello'))
    const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server
    const port = await portOf(server.listen(0, '127.0.0.1'))
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('other')
    await until('the lease is over', async () => (await used()) === 0)
  })

  it('sends its headers when it refuses a protocol upgrade', async () => {
    const headers = { upgrade: 'websocket', connection: 'Upgrade' }
    const app = new Hono().use(rateLimit({ ...one, name: 'outer', limit: 2 })).use(rateLimit(one))
    app.get('/', (c) => c.text('plain', 426))
    const plain = await app.request('/', { headers }, env)
    expect([plain.status, plain.headers.get('ratelimit')]).toEqual([426, null])
    const refused = await app.request('/', { headers }, env)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    expect(refused.headers.get('ratelimit')).toContain('"default";r=0;t=60')
    expect(refused.headers.get('cache-control')).toBe('no-store')
    for (const handler of [undefined, 'throw', () => new Response('mine')] as const) {
      const refusing = new Hono().use((c, next) => {
        c.header('Set-Cookie', 'a=1')
        return next()
      })
      refusing.use(rateLimit({ ...one, limit: 0, ...(handler && { handler }) }))
      const found = (await refusing.request('/', { headers }, env)).headers
      expect([found.get('ratelimit'), found.get('set-cookie')]).toEqual(['"default";r=0', 'a=1'])
    }
  })

  it.each([401, 404, 500] as const)(
    'settles by the status of an HTTPException: %i',
    async (status) => {
      const { statuses, chargeWhen } = settling()
      const app = new Hono().use(rateLimit({ ...one, chargeWhen })).get('/', () => {
        throw new HTTPException(status, { message: 'mine' })
      })
      const found = await app.request('/', {}, env)
      expect([found.status, found.headers.get('ratelimit')]).toEqual([status, spent])
      await found.text()
      expect(statuses).toEqual([status])
    },
  )

  it('settles by the status that onError answers with', async () => {
    const { statuses, chargeWhen } = settling()
    const app = new Hono().use(rateLimit({ ...one, chargeWhen }))
    app.onError((_error, c) => c.text('teapot', 418))
    app.get('/', () => {
      throw new Error('mine')
    })
    const found = await app.request('/', {}, env)
    expect([await found.text(), found.headers.get('ratelimit')]).toEqual(['teapot', spent])
    expect(statuses).toEqual([418])
  })

  it('adds its headers to the response of an HTTPException', async () => {
    const res = new Response('no', { status: 401, headers: { 'www-authenticate': 'Basic' } })
    const app = new Hono().use(rateLimit(one)).get('/', () => {
      throw new HTTPException(401, { res })
    })
    const { status, headers } = await app.request('/', {}, env)
    expect([status, headers.get('www-authenticate')]).toEqual([401, 'Basic'])
    expect(headers.get('ratelimit')).toBe(spent)
  })
})

describe('a limiter of fetch', () => {
  it('passes a protocol upgrade through unchanged, and ends its lease', async () => {
    const { Request, Response } = globalThis
    onTestFinished(() => void Object.assign(globalThis, { Request, Response }))
    createAdaptorServer({ fetch: () => Response.error() }) // Replaces Response with its own.
    const { options, used } = counted(inFlight)
    const response = upgraded()
    expect(await fetchLimit(options)(() => response)(new Request('http://a/'), info)).toBe(response)
    expect(await used()).toBe(0)
  })

  it('ends a lease of a dropped response once it is garbage collected', async () => {
    setFlagsFromString('--expose-gc')
    const collect: unknown = runInNewContext('gc')
    const { options, used } = counted(inFlight)
    await fetchLimit(options)(() => new Response('hello'))(new Request('http://a/'), info)
    await until('the lease is over', async () => {
      Reflect.apply(Object(collect), undefined, [])
      return (await used()) === 0
    })
  })

  it.each([204, 205, 304])('adds no body to status %i', async (status) => {
    const handler = fetchLimit(one)(() => new Response(null, { status }))
    const found = await handler(new Request('http://a/'), info)
    expect([found.status, found.body]).toEqual([status, null])
  })
})

describe('a limiter of Koa', () => {
  const serving = async (app: Pick<Koa, 'listen' | 'silent'>) => {
    app.silent = true
    const port = await portOf(app.listen(0, '127.0.0.1'))
    return (init?: RequestInit) => fetch(`http://127.0.0.1:${port}/`, init)
  }

  it('keeps Retry-After and its headers on an error from ctx.throw', async () => {
    const app = new Koa().use(koaLimit(one)).use((context) => context.throw(401, 'who?'))
    const ask = await serving(app)
    const thrown = await ask()
    expect([thrown.status, thrown.headers.get('ratelimit')]).toEqual([401, spent])
    const refused = await ask()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
  })

  it('leaves a response with ctx.respond = false alone', async () => {
    const { options, used } = counted(inFlight)
    const app = new Koa().use(koaLimit(options)).use((context) => {
      context.respond = false
      context.res.end('mine')
    })
    const ask = await serving(app)
    expect(await (await ask()).text()).toBe('mine')
    await until('the lease is over', async () => (await used()) === 0)
  })
})

describe.each(['Express', 'Fastify'] as const)('a limiter of Nest on %s', (platform) => {
  /** Asks an application with this handler. */
  const serving = async (handle: () => unknown, limits: RateLimitModuleOptions) => {
    const answering: MethodDecorator = (_target, _name, descriptor) => {
      descriptor.value = handle as never
    }
    const controllers = [controllerOf('Handler', { all: [answering, Get('all')] })]
    const app = await start({ platform, controllers, limits: RateLimitModule.forRoot(limits) })
    return (init?: RequestInit) => app.ask('/all', init)
  }

  it('keeps its fields on an exception of the handler, and settles by its status', async () => {
    const { statuses, chargeWhen } = settling()
    const forbid = () => Promise.reject(new ForbiddenException())
    const ask = await serving(forbid, { ...one, chargeWhen })
    const { status, headers } = await ask()
    expect([status, headers.get('ratelimit')]).toEqual([403, spent])
    await until('the request is settled', () => statuses.length > 0)
    expect(statuses).toEqual([403])
  })

  it('ends a lease if the client disconnects during a StreamableFile', async () => {
    const { options, used } = counted(inFlight)
    const endless = function* () {
      for (;;) yield 'x'.repeat(1_000)
    }
    const ask = await serving(() => new StreamableFile(Readable.from(endless())), options)
    const leaving = new AbortController()
    const response = await ask({ signal: leaving.signal })
    expect(await used()).toBe(1)
    leaving.abort()
    await response.text().catch(() => undefined)
    await until('the lease is over', async () => (await used()) === 0)
  })
})
