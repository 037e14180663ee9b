import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Server } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, vi } from 'vitest'
import { repeated } from '../support/in-turn.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { it } from '../support/redis-test.ts'
import { until } from '../support/until.ts'
import { readText, root } from '../support/workspace.ts'

/** The blocks of TypeScript in the guide of the packages and on the first pages, by page, heading and the title of their tab. */
const blocks = new Map(
  [
    'packages/core/GUIDE.md',
    'docs/index.md',
    ...['index', 'proxy', 'redis'].map((name) => `docs/start/${name}.md`),
  ].flatMap((page) =>
    readText(page)
      .split(/^## /m)
      .flatMap((section) =>
        [...section.matchAll(/^```ts(?: \[(.*?)\])?\n(.*?)^```/gms)].map(
          ([, tab = '', code = '']) => {
            const heading = section.slice(0, section.indexOf('\n')).replace('# ', '')
            const name = [page.replace('docs/', ''), heading, tab].filter(Boolean).join(' > ')
            return [name, code] as const
          },
        ),
      ),
  ),
)
const tried = new Set<string>()
const servers: Server[] = []
let folder: string
let redisServer: RedisServer

// The server starts here, before the tests replace `listen`.
it.beforeAll(async ({ redis }) => {
  redisServer = redis
  // Inside the tests' folder, where its imports resolve as a user's do.
  folder = await mkdtemp(join(root, 'test/examples/.start-'))
  const compilerOptions = { experimentalDecorators: true }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  return () => rm(folder, { recursive: true })
})

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_795_195_800_250 })
  const { listen } = Server.prototype
  // Port 3000 may be taken: the servers of the pages listen on any.
  vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server, ...args) {
    servers.push(this)
    return Reflect.apply(listen, this, args.map(atAnyPort))
  })
})

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  vi.unstubAllEnvs()
  vi.useRealTimers()
})

function atAnyPort(given: unknown): unknown {
  if (given === 3000) return 0
  const isOptions = typeof given === 'object' && given !== null && 'port' in given
  return isOptions ? { ...given, port: 0 } : given
}

/** Runs a block as it stands on the page, in the application that it leaves out. */
async function runBlock(name: string, before = '', after = '') {
  const code = blocks.get(name)
  if (code === undefined) throw new Error(`no page has the block ${name}`)
  const file = join(folder, `block-${tried.size}.ts`)
  tried.add(name)
  await writeFile(file, `${before}\n${code}\n${after}\nexport {}\n`)
  const module: Record<string, unknown> = await import(/* @vite-ignore */ file)
  return module
}

/** Asks the server that a block has started. */
async function askServer(path: string, init?: RequestInit): Promise<Response> {
  await until('the block listens', () => servers[0]?.listening === true)
  const address = servers[0]?.address()
  return fetch(`http://localhost:${Object(address).port}${path}`, init)
}

const statuses = (path: string, count: number, init?: RequestInit) =>
  repeated(count, async () => (await askServer(path, init)).status)

const express = `import express from 'express'
  const app = express()`
const expressApp = `import { rateLimit } from '@sluice/express'
  ${express}`
const helloOfExpress = `app.get('/', (_request, response) => void response.send('hello'))
  app.listen(3000)`
const fastify = `import { rateLimitPlugin } from '@sluice/fastify'
  import fastify from 'fastify'
  const app = fastify()`
const helloOfFastify = `app.get('/', async () => 'hello')
  await app.listen({ port: 3000 })`
const hono = `import { serve } from '@hono/node-server'
  import { rateLimit } from '@sluice/hono'
  import { Hono } from 'hono'
  const app = new Hono()`
const helloOfHono = `app.get('/', (c) => c.text('hello'))
  serve({ fetch: app.fetch, port: 3000 })`
const nest = `import { Controller, Get, Module, Post } from '@nestjs/common'
  import { APP_GUARD, NestFactory } from '@nestjs/core'
  import { RateLimit, RateLimitGuard, RateLimitModule } from '@sluice/nest'
  @Controller() class Hello { @Get() hello() { return 'hello' } }
  const limits = {
    imports: [RateLimitModule.forRoot({ limit: 100, window: '1m' })],
    providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
  }`

describe('the guide of the packages', () => {
  it('limits an application, and its failed logins', async () => {
    await runBlock('packages/core/GUIDE.md > An application with two limits')
    const login = (email: string) => ({
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email }),
    })
    const failed = [401, 401, 401, 401, 401, 429]
    expect(await statuses('/login', 6, login('ada@example.com'))).toEqual(failed)
    expect(await statuses('/login', 1, login('bob@example.com'))).toEqual([401])
    expect(await statuses('/', 14)).toEqual([...Array(13).fill(404), 429])
  })

  it('names only options, keys and functions that there are', async () => {
    const guide = readText('packages/core/GUIDE.md')
    const named = [...guide.matchAll(/\| `(\w+): (\w*)/g)].flatMap((match) => match.slice(1))
    const exported = Object.keys(await import('@sluice/express'))
    const documented = readText('docs/options.md')
    for (const name of named.filter((each) => each !== ''))
      expect(exported.includes(name) || documented.includes(`\`${name}\``), name).toBe(true)
    const links = [...guide.matchAll(/sluice-js\.github\.io\/sluice\/(\w+)\.html/g)]
    expect(links.length).toBeGreaterThan(0)
    for (const [, page] of links) expect(readText(`docs/${page}.md`)).not.toBe('')
  })
})

describe('the block of the page', () => {
  it.each<[name: string, before?: string, after?: string]>([
    ['index.md > A limit in one line'],
    ['start/index.md > Add a limit > Express'],
    ['start/index.md > Add a limit > Fastify'],
    ['start/index.md > Add a limit > Koa'],
    ['start/index.md > Add a limit > Hono'],
    ['start/index.md > Add a limit > fetch'],
    [
      'start/index.md > Add a limit > NestJS',
      `import { Controller, Get } from '@nestjs/common'
        import { NestFactory } from '@nestjs/core'`,
      `@Controller() class Hello { @Get() hello() { return 'hello' } }
        @Module({ imports: [AppModule], controllers: [Hello] }) class Whole {}
        await (await NestFactory.create(Whole, { logger: false })).listen(3000)`,
    ],
  ])('%s admits five requests', async (name, before, after) => {
    vi.stubEnv('PORT', undefined)
    await runBlock(name, before, after)
    expect(await statuses('/', 6)).toEqual([200, 200, 200, 200, 200, 429])
  })

  it.each([
    [
      'Express, Koa, Hono, fetch',
      `${expressApp}
        app.use(`,
      `)
        app.post('/login', (_request, response) => void response.send('in'))
        app.get('/health', (_request, response) => void response.send('ok'))
        ${helloOfExpress}`,
    ],
    [
      'Fastify',
      `${fastify}
        await app.register(rateLimitPlugin, { limit: 100, window: '1m' })
        const [login, health] = [async () => 'in', async () => 'ok']`,
      `await app.listen({ port: 3000 })`,
    ],
    [
      'NestJS',
      `import { HttpCode, SetMetadata } from '@nestjs/common'
        import { SkipRateLimit } from '@sluice/nest'
        ${nest}
        @Controller() class Logins {
          @SkipRateLimit() @Get('health') health() {}
          @HttpCode(200)`,
      `}
        @Module({ ...limits, controllers: [Hello, Logins] }) class AppModule {}
        await (await NestFactory.create(AppModule, { logger: false })).listen(3000)`,
    ],
  ])('start/index.md > Give one route its own limit > %s', async (tab, before, after) => {
    await runBlock(`start/index.md > Give one route its own limit > ${tab}`, before, after)
    const login = await statuses('/login', 6, { method: 'POST' })
    expect(login).toEqual([200, 200, 200, 200, 200, 429])
    expect((await askServer('/health')).headers.has('ratelimit')).toBe(false)
  })

  it.each([
    ['Express', expressApp, helloOfExpress],
    ['Fastify', fastify, helloOfFastify],
    [
      'NestJS',
      `${nest.replace('limit: 100', 'limit: 5')}
        @Module({ ...limits, controllers: [Hello] }) class AppModule {}`,
      `await app.listen(3000)`,
    ],
    ['Hono', hono, helloOfHono],
  ])(
    'start/index.md > Run CORS first > %s, so that preflights never count',
    async (tab, before, after) => {
      await runBlock(`start/index.md > Run CORS first > ${tab}`, before, after)
      const headers = { origin: 'https://a.example', 'access-control-request-method': 'GET' }
      const preflight = { method: 'OPTIONS', headers }
      expect(await statuses('/', 7, preflight)).toEqual(Array(7).fill(204))
      expect(await statuses('/', 5, { headers })).toEqual(Array(5).fill(200))
      const refused = await askServer('/', { headers })
      expect(refused.status).toBe(429)
      expect(refused.headers.get('access-control-allow-origin')).toBe('*')
      expect(await statuses('/', 1, preflight)).toEqual([204])
    },
  )

  const toProxy = 'start/proxy.md > Behind a proxy'
  it.each([
    [
      'Express',
      expressApp,
      `app.use(rateLimit({ limit: 100, window: '1m' }))
        ${helloOfExpress}`,
    ],
    [
      'NestJS',
      `import type { NestExpressApplication } from '@nestjs/platform-express'
        ${nest}
        @Module({ ...limits, controllers: [Hello] }) class AppModule {}`,
      'await app.listen(3000)',
    ],
    [
      'Koa',
      `import { rateLimit } from '@sluice/koa'
        import Koa from 'koa'
        const app = new Koa()`,
      `app.use(rateLimit({ limit: 100, window: '1m' }))
        app.use((context) => { context.body = 'hello' })
        app.listen(3000)`,
    ],
    [
      'Hono',
      `${hono}
        app.use(`,
      `)
        ${helloOfHono}`,
    ],
    [
      'fetch',
      `import { serve } from '@hono/node-server'
        import { rateLimit } from '@sluice/fetch'
        const limit =`,
      `const handler = limit(() => new Response('hello'))
        serve({ fetch: (request) => handler(request, {}), port: 3000 })`,
    ],
  ])(`${toProxy} > %s finds the client behind a proxy`, async (tab, before, after) => {
    await runBlock(`${toProxy} > ${tab}`, before, after)
    const left = (address: string) =>
      leftOf({ 'x-forwarded-for': `10.9.9.9, ${address}`, 'x-real-ip': address })
    expect(await left('203.0.113.9')).toBe('99')
    expect(await left('203.0.113.10')).toBe('99')
    expect(await left('203.0.113.9')).toBe('98')
  })

  it(`${toProxy} > Fastify finds the client behind a proxy`, async () => {
    const { left } = await runBlock(
      `${toProxy} > Fastify`,
      `import { rateLimitPlugin } from '@sluice/fastify'
        import fastify from 'fastify'`,
      `await app.register(rateLimitPlugin, { limit: 100, window: '1m' })
        app.get('/', async () => 'hello')
        export async function left(address, proxy) {
          const headers = { 'x-forwarded-for': address }
          return (await app.inject({ url: '/', remoteAddress: proxy, headers })).headers['x-ratelimit-remaining']
        }`,
    )
    const ask = (...args: string[]) => Reflect.apply(Object(left), undefined, args)
    expect(await ask('203.0.113.9', '10.0.0.1')).toBe('99')
    expect(await ask('203.0.113.10', '10.0.0.2')).toBe('99')
    expect(await ask('203.0.113.9', '10.0.0.2')).toBe('98')
    expect(await ask('203.0.113.9', '192.0.2.1')).toBe('99')
  })

  it('start/proxy.md counts users, and else addresses', async () => {
    const before = `${express}
      app.use((request, response, next) => {
        if (request.get('x-user')) response.locals.user = { id: request.get('x-user') }
        next()
      })`
    await runBlock('start/proxy.md > Count something better than addresses', before, helloOfExpress)
    expect(await leftOf({ 'x-user': 'ada' })).toBe('99')
    expect(await leftOf({})).toBe('99')
    expect(await leftOf({ 'x-user': 'ada' })).toBe('98')
  })

  it('start/redis.md counts in Redis, by either client', async () => {
    vi.stubEnv('REDIS_URL', redisServer.url)
    for (const [tab, end] of [
      ['ioredis', 'disconnect'],
      ['node-redis', 'destroy'],
    ] as const) {
      const after = `${helloOfExpress}
        export const close = () => redis.${end}()`
      const { close } = await runBlock(`start/redis.md > Add the store > ${tab}`, express, after)
      await until('the counts are in Redis', async () => {
        expect((await askServer('/')).status).toBe(200)
        return Number(await redisServer.cli('DBSIZE')) > 0
      })
      Reflect.apply(Object(close), undefined, [])
      await redisServer.cli('FLUSHALL')
      for (const each of servers.splice(0)) each.close()
    }
  })

  it('start/redis.md gives policies names', async () => {
    const before = `import { memoryStore } from '@sluice/express'
      ${expressApp}
      const store = memoryStore()
      app.use(`
    await runBlock('start/redis.md > Give policies names', before, `)\n${helloOfExpress}`)
    const { headers } = await askServer('/')
    expect(headers.get('ratelimit-policy')).toBe('"burst";q=10;w=1, "sustained";q=600;w=60')
  })

  it('start/redis.md shuts down', async () => {
    vi.stubEnv('REDIS_URL', redisServer.url)
    const once = vi.spyOn(process, 'once').mockReturnThis()
    const { redis } = await runBlock(
      'start/redis.md > Shut down',
      `import { createServer } from 'node:http'
        import { redisStore } from '@sluice/redis'
        import { Redis } from 'ioredis'
        const server = createServer().listen(3000)
        export const redis = new Redis(process.env.REDIS_URL)
        const store = redisStore(redis)
        await redis.ping()`,
    )
    const [, stop] = once.mock.calls.find(([event]) => event === 'SIGTERM') ?? []
    stop?.()
    await until('the client is closed', () => Reflect.get(Object(redis), 'status') === 'end')
    expect(servers[0]?.listening).toBe(false)
  })

  it('is tested', () => {
    expect([...tried].sort()).toEqual([...blocks.keys()].sort())
  })
})

async function leftOf(headers: Record<string, string>): Promise<string | null> {
  return (await askServer('/', { headers })).headers.get('x-ratelimit-remaining')
}
