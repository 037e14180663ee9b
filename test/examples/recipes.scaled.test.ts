import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { get, type Server } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import * as grpc from '@grpc/grpc-js'
import { expectLimited, expectNotLimited } from '@sluice/testing'
import { createTRPCClient, httpBatchLink, httpLink, TRPCClientError } from '@trpc/client'
import { initTRPC } from '@trpc/server'
import type express from 'express'
import type { FastifyInstance } from 'fastify'
import type { Hono } from 'hono'
import type { Redis } from 'ioredis'
import { io as connectSocket } from 'socket.io-client'
import request from 'supertest'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { WebSocket } from 'ws'
import { portOf } from '../adapters/drivers/driver.ts'
import { it } from '../support/redis-test.ts'
import { isProof } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { root } from '../support/workspace.ts'
import { pageModules, tabModules, tryModules, writeModules } from './page-modules.ts'

const recipes = pageModules('docs/recipes.md')
const page = tryModules(recipes)
const { tried, load: recipe } = page

type TrpcApi = ReturnType<typeof trpcApi>

/** The router of the recipe: its type cannot be imported from a page. */
function trpcApi() {
  const { procedure, router } = initTRPC.create()
  return router({ hello: procedure.query(() => 'hello') })
}

const serialize = (text: string) => Buffer.from(text)
const hello = {
  ...{ path: '/Greeter/Hello', requestStream: false, responseStream: false },
  ...{ requestSerialize: serialize, responseSerialize: serialize },
  ...{ requestDeserialize: String, responseDeserialize: String },
} as const

/** Serves the recipe for gRPC at an address. @returns what calls it, and what was called */
async function greeter(address: string) {
  const { server } = await recipe<{ server: grpc.Server }>('gRPC calls')
  const handled: string[] = []
  server.addService(
    { hello },
    {
      hello({ request }: { request: string }, done: (error: null, reply: string) => void) {
        handled.push(request)
        done(null, `hello ${request}`)
      },
    },
  )
  const local = grpc.ServerCredentials.createInsecure()
  const port = await promisify(server.bindAsync.bind(server))(address, local)
  const at = address.replace(/:0$/, `:${port}`)
  const client = new grpc.Client(at, grpc.credentials.createInsecure())
  onTestFinished(() => {
    client.close()
    server.forceShutdown()
  })
  const call = (name: string) =>
    new Promise<string | grpc.ServiceError | undefined>((resolve) => {
      const { path, requestSerialize, responseDeserialize } = hello
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, name, (error, reply) =>
        resolve(error ?? reply),
      )
    })
  return { call, handled }
}

const appOf = async (heading: string) => (await recipe<{ app: express.Express }>(heading)).app

describe('the recipes', () => {
  it('limit a whole API', async ({ redis: server }) => {
    vi.stubEnv('REDIS_URL', server.url)
    const { app, redis } = await recipe<{ app: express.Express; redis: Redis }>('A whole API')
    onTestFinished(() => {
      vi.unstubAllEnvs()
      redis.disconnect()
    })
    app.post('/login', (_request, response) => void response.sendStatus(401))
    app.use((_request, response) => void response.sendStatus(200))
    const policies = async (path: string) => (await request(app).get(path)).get('ratelimit-policy')

    expect(await policies('/')).toBe('"default";q=60;w=60')
    expect(await policies('/search/x')).toBe('"default";q=60;w=60, "search";q=3;w=1')
    expect(await policies('/health')).toBeUndefined()
    const statuses: number[] = []
    for (let i = 0; i < 6; i += 1) statuses.push((await request(app).post('/login')).status)
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
    let reached = 0
    for (let i = 0; i < 40; i += 1) {
      const login = request(app).post('/login').set('X-Api-Key', `made up ${i}`)
      const { status } = await login.send({ name: `name ${i}` })
      if (status === 401) reached += 1
    }
    expect(reached).toBeLessThanOrEqual(20)
  })

  it('limit a public API by address', async () => {
    const app = await appOf('A public API by address')
    const from = (address: string, path = '/items') =>
      request(app).get(path).set('X-Forwarded-For', address)

    for (let i = 0; i < 20; i += 1) await from(`10.0.0.${i}, 203.0.113.9`).expect(200)
    const refused = await from('203.0.113.9').expect(429)

    expect(refused.get('retry-after')).toMatch(/^[12]$/)
    expect(refused.get('access-control-expose-headers')).toContain('Retry-After')
    await from('203.0.113.9', '/health').expect(200)
    await from('203.0.113.10').expect(200)
  })

  it("share a tenant's quota between its routes", async () => {
    const { app } = await recipe<{ app: FastifyInstance }>("A tenant's share of each route")
    onTestFinished(() => app.close())
    const status = async (url: string, tenant?: string) => {
      const headers = tenant === undefined ? {} : { 'x-verified-tenant': tenant }
      return (await app.inject({ url, headers })).statusCode
    }

    for (let i = 0; i < 100; i += 1) expect(await status(`/orders/${i}`, 'acme')).toBe(200)
    expect(await status('/orders/100', 'acme')).toBe(429)
    expect(await status('/invoices/1', 'acme')).toBe(200)
    expect(await status('/orders/1', 'other')).toBe(200)
    expect(await status('/orders/1')).toBe(429)
  })

  it('stay below the quota of a vendor', async () => {
    const app = await appOf("A vendor's quota")
    for (let i = 0; i < 90; i += 1) await request(app).get('/rates').expect(200)

    await request(app).get('/rates').expect(503).expect('Retry-After', '1')
  })

  it('count expensive endpoints for more', async () => {
    const app = await appOf('Expensive endpoints')
    const left = async (path: string) => {
      const answer = await request(app).get(path).expect(200)
      return /"units";r=(\d+)/.exec(answer.get('ratelimit') ?? '')?.[1]
    }

    expect(await left('/items')).toBe('999')
    expect(await left('/search/x')).toBe('989')
    expect(await left('/report?days=30')).toBe('959')
    expect(await left('/report?days=0')).toBe('594')
    expect((await request(app).get('/report?days=1')).get('ratelimit')).toContain('"reports";r=1')
  })

  it('count GraphQL queries by what they ask for', async () => {
    const app = await appOf('GraphQL by complexity')
    const left = async (query: string) => {
      const answer = await request(app).post('/graphql').send({ query })
      return /r=(\d+)/.exec(answer.get('ratelimit') ?? '')?.[1]
    }

    expect(await left('{ me { id name } }')).toBe('997')
    expect(await left('{ users { name posts { title } } }')).toBe(String(997 - 1 - 20 - 100))
    expect(await left('}')).toBe('875')
    const deep = await request(app)
      .post('/graphql')
      .send({ query: '{ users { posts { users { id } } } }' })
    expect(deep.status).toBe(429)
    expect(deep.body.errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }])
  })

  it('count uploads by what really came', async () => {
    const app = await appOf('Uploads of unknown length')
    const put = (bytes: number) => request(app).put('/files/a').send(Buffer.alloc(bytes))
    await put(4_000_000).expect(201)
    const chunked = request(app).put('/files/b').set('Transfer-Encoding', 'chunked')
    chunked.write(Buffer.alloc(3_000_000))
    await chunked.expect(201, { received: 3_000_000 })

    await put(4_000_000).expect(429)
    await put(2_900_000).expect(201)
  })

  it('count messages of WebSockets', async () => {
    const { server } = await recipe<{ server: Server }>('WebSocket messages')
    const url = `ws://127.0.0.1:${await portOf(server.listen(0, '127.0.0.1'))}`
    const socket = new WebSocket(url)
    const got: string[] = []
    socket.on('message', (data) => void got.push(String(data)))
    await once(socket, 'open')
    for (let i = 0; i < 40; i += 1) socket.send(String(i))
    const [code] = await once(socket, 'close')

    expect(code).toBe(1008)
    expect(got.filter((text) => text.startsWith('got'))).toHaveLength(20)
    expect(got.filter((text) => text === 'wait 200 ms')).toHaveLength(10)
    const refusals: unknown[] = []
    for (let i = 0; i < 11; i += 1) {
      const again = new WebSocket(url)
      await once(again, 'open').catch((error) => refusals.push(String(error)))
      again.terminate()
    }
    expect(refusals).toEqual(Array(2).fill('Error: Unexpected server response: 429'))
  })

  it('limit procedures of tRPC', async () => {
    const { server } = await recipe<{ server: Server }>('tRPC procedures')
    const url = `http://127.0.0.1:${await portOf(server.listen(0, '127.0.0.1'))}`
    const single = createTRPCClient<TrpcApi>({ links: [httpLink({ url })] })
    const batched = createTRPCClient<TrpcApi>({ links: [httpBatchLink({ url })] })
    for (let i = 0; i < 4; i += 1) expect(await single.hello.query()).toBe('hello')
    const batch = await Promise.allSettled([batched.hello.query(), batched.hello.query()])
    const refused: unknown = await single.hello.query().catch((error: unknown) => error)

    expect(batch.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(refused).toBeInstanceOf(TRPCClientError)
    expect(refused).toMatchObject({
      message: 'wait 60000 ms',
      data: { code: 'TOO_MANY_REQUESTS', httpStatus: 429 },
    })
    await expectLimited(await fetch(`${url}/hello`), { retryAfter: 60 })
  })

  it('refuse calls of tRPC and gRPC without an address, which would share one key', async () => {
    const { server } = await recipe<{ server: Server }>('tRPC procedures')
    const socketPath = join(page.folder, 'trpc.sock')
    await once(server.listen(socketPath), 'listening')
    onTestFinished(() => void server.close())
    const [answer] = await once(get({ socketPath, path: '/hello', agent: false }), 'response')
    answer.resume()
    expect(answer.statusCode).toBe(400)

    const { call, handled } = await greeter(`unix:${join(page.folder, 'grpc.sock')}`)
    expect(await call('x')).toMatchObject({
      ...{ code: grpc.status.UNAUTHENTICATED, details: 'no address' },
    })
    expect(handled).toEqual([])
  })

  it('limit calls of gRPC', async () => {
    const { call, handled } = await greeter('127.0.0.1:0')
    for (let i = 0; i < 5; i += 1) expect(await call(`${i}`)).toBe(`hello ${i}`)
    const refused = await call('one too many')

    expect(refused).toMatchObject({
      code: grpc.status.RESOURCE_EXHAUSTED,
      details: 'too many calls',
    })
    const { metadata } = refused as grpc.ServiceError
    expect(metadata.get('grpc-retry-pushback-ms')).toEqual(['60000'])
    expect(handled).toHaveLength(5)
  })

  it('limit connections and events of Socket.IO', async () => {
    const { server } = await recipe<{ server: Server }>('Socket.IO events')
    const url = `http://127.0.0.1:${await portOf(server.listen(0, '127.0.0.1'))}`
    const connect = () => {
      const socket = connectSocket(url, { forceNew: true, transports: ['websocket'] })
      onTestFinished(() => void socket.disconnect())
      return socket
    }
    const socket = connect()
    const limited: unknown[] = []
    socket.on('limited', (refusal) => void limited.push(refusal))
    const answers = await Promise.all(
      Array.from({ length: 22 }, (_, i) => socket.emitWithAck('say', i)),
    )
    socket.emit('say', 'unheard')
    await until('the client is told', () => limited.length > 0)
    const refusal = { error: 'too many events', event: 'say', retryAfterMs: 1_000 }

    expect(answers.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, i) => ({ said: i })))
    expect([...answers.slice(20), ...limited]).toEqual([refusal, refusal, refusal])
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () => {
        const other = connect()
        return new Promise((resolve) => {
          other.on('connect', () => resolve('connected'))
          other.on('connect_error', resolve)
        })
      }),
    )
    expect(outcomes.filter((outcome) => outcome === 'connected')).toHaveLength(9)
    expect(outcomes.find((outcome) => outcome !== 'connected')).toMatchObject({
      message: 'too many connections',
      data: { retryAfterMs: 60_000 },
    })
  })

  it('limit route handlers of Next.js', async () => {
    type Handler = (request: Request, context: { params: Promise<{ id: string }> }) => Response
    const { GET } = await recipe<{ GET: Handler }>('Next.js route handlers')
    const url = 'http://localhost/api/items/1'
    const ask = async (address: string) =>
      GET(new Request(url, { headers: { 'x-real-ip': address } }), {
        params: Promise.resolve({ id: '1' }),
      })

    for (let i = 0; i < 99; i += 1) await ask('203.0.113.9')
    const last = await ask('203.0.113.9')
    await expectNotLimited(last, { remaining: 0 })
    expect(await last.json()).toEqual({ id: '1' })
    await expectLimited(await ask('203.0.113.9'), { retryAfter: 60 })
    await expectNotLimited(await ask('203.0.113.10'), { remaining: 99 })
  })

  it('limit apps within apps of Hono', async () => {
    const { app } = await recipe<{ app: Hono }>('Hono apps within apps')
    const connection = { incoming: { socket: { remoteAddress: '203.0.113.9' } } }
    const ask = async (path: string, method = 'GET') => app.request(path, { method }, connection)
    for (let i = 0; i < 50; i += 1) expect((await ask('/v1/items')).status).toBe(200)
    await expectLimited(await ask('/v1/items'))
    await expectNotLimited(await ask('/v2/items'), { remaining: 49 })
    for (let i = 0; i < 10; i += 1) expect((await ask('/v2/items', 'POST')).status).toBe(201)
    await expectLimited(await ask('/v2/items', 'POST'), { policy: 'writes' })
    vi.setSystemTime(Date.now() + 59_999)
    await expectLimited(await ask('/v2/items', 'POST'), { policy: 'writes', retryAfter: 1 })
  })

  it('roll out a limit in shadow, then for some, always the same', async () => {
    const heading = 'Rolling out a limit'
    type Exports = { app: express.Express; wouldRefuse: Map<string, number> }
    const { app, wouldRefuse } = await recipe<Exports>(heading)
    const ask = (subject: express.Express, key: string) =>
      request(subject).get('/items').set('x-api-key', key)
    for (let i = 0; i < 12; i += 1) await ask(app, 'a').expect(200)

    expect(wouldRefuse).toEqual(new Map([['new', 2]]))
    expect((await ask(app, 'a')).get('ratelimit-policy')).toBe('"old";q=100;w=60')
    vi.resetModules()
    vi.stubEnv('STAGE', 'canary')
    onTestFinished(() => void vi.unstubAllEnvs())
    const canary = await recipe<Exports>(heading)
    const enforced: string[] = []
    for (let i = 0; i < 60; i += 1) {
      const policies = (await ask(canary.app, `key-${i}`)).get('ratelimit-policy')
      if (policies?.includes('new')) enforced.push(`key-${i}`)
    }
    expect(enforced.length).toBeGreaterThan(0)
    expect(enforced.length).toBeLessThan(20)
    for (const key of enforced) {
      expect((await ask(canary.app, key)).get('ratelimit-policy')).toContain('new')
    }
  })

  it('are all tested', () => {
    expect([...tried].sort()).toEqual(recipes.map(({ heading }) => heading).sort())
  })

  it.runIf(isProof)('have no mistake in their types', { timeout: 90_000 }, async () => {
    const written = await writeModules([...recipes, ...tabModules('docs/tasks.md')])
    onTestFinished(() => written.remove())
    const config = {
      extends: '../../tsconfig.json',
      compilerOptions: {
        noEmit: true,
        composite: false,
        incremental: false,
        noUnusedLocals: true,
        experimentalDecorators: true,
      },
      include: ['*.ts'],
    }
    await writeFile(join(written.folder, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(root, 'node_modules/.bin/tsc')
    const checked = promisify(execFile)(tsc, ['-p', written.folder])

    await expect(checked).resolves.toMatchObject({ stdout: '' })
  })
})
