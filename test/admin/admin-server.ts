import { createServer, type Server } from 'node:http'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import { type AdminOptions, createAdmin, type Granted } from '@sluice/admin'
import { memoryStore, type Store } from '@sluice/core'
import { mount as expressMount, rateLimit } from '@sluice/express'
import { mount as fastifyMount, rateLimitPlugin } from '@sluice/fastify'
import { mount as fetchMount, rateLimit as fetchRateLimit } from '@sluice/fetch'
import { mount as honoMount, rateLimit as honoRateLimit } from '@sluice/hono'
import { route, tenant, user } from '@sluice/http'
import { mount as koaMount, rateLimit as koaRateLimit } from '@sluice/koa'
import { collectMetrics, type Metrics } from '@sluice/metrics'
import type { Policies } from '@sluice/policies'
import { createQueue, memoryBroker, type Queue } from '@sluice/queue'
import { Ajv2020 } from 'ajv/dist/2020.js'
import express5 from 'express'
import express4 from 'express4'
import Fastify from 'fastify'
import { type Context, Hono } from 'hono'
import Koa from 'koa'
import { expect, onTestFinished } from 'vitest'
import { ask } from '../adapters/ask.ts'
import { runningOn } from '../adapters/drivers/driver.ts'
import { openInTest } from '../policies/live-policies.ts'
import { readText } from '../support/workspace.ts'

export const frameworks = ['express 5', 'express 4', 'fastify', 'koa', 'hono', 'fetch'] as const
type Framework = (typeof frameworks)[number]

/** A file with a policy for each kind of key, and an override. */
const wholeFile = `
# A machine that runs tests may stand still for seconds.
deadlineMs: 10000
policies:
  - { name: burst, limit: 5, window: 1h, key: user }
  - { name: account, limit: 100, window: 1h, key: { all: [tenant, user] } }
  - { name: anybody, limit: 1000, window: 1h, key: { firstOf: [tenant, ip] } }
penalty: { after: never, key: user }
overrides:
  - { policy: burst, key: { user: vip }, limit: 50, reason: contract }
`

export const everything: Granted = { actor: 'ada', may: ['read', 'keys', 'policies'] }

interface Part {
  readonly options: AdminOptions
  readonly policies: Policies
  readonly metrics: Metrics
  readonly store: Store
}

export interface AdminUnderTest {
  readonly port: number
  readonly policies: Policies
  readonly metrics: Metrics
  readonly queue: Queue
  readonly store: Store
  /** Asks the application behind the limiter. */
  visit(user: string, tenant?: string, plan?: string): Promise<number>
  /** Asks the API, and checks the answer against openapi.json. */
  call(method: 'GET' | 'POST', path: string, options?: CallOptions): Promise<Answered>
  /** Looks up a key. */
  look(key: unknown): Promise<Answered>
  /** Acts on keys, for a reason: `reset`. */
  act(action: string, body: object): Promise<Answered>
  /** Changes policies, for a reason: `changes`, `rollback` or `kill`. @param version that is replaced @default version the one in force */
  change(action: string, body: object, version?: string): Promise<Answered>
}

const reason = 'a test'

export interface CallOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The body as it is sent. @default that of `body`, as JSON */
  readonly text?: string
}

interface Answered {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests read what the schema was checked for
  readonly body: any
  readonly etag: string | undefined
  field(name: string): string | undefined
}

interface StartOptions {
  readonly framework?: Framework
  readonly file?: string
  readonly store?: Store
  /** @default may do everything */
  readonly admin?: AdminOptions
}

/** Starts an application with limits that change and the admin API under /limits, until the test is over. */
export async function startAdmin(options: StartOptions = {}): Promise<AdminUnderTest> {
  const { framework = 'express 5', file = wholeFile, store = memoryStore(), admin = {} } = options
  const { policies } = await openInTest(file, store)
  const metrics = collectMetrics({ store })
  onTestFinished(() => metrics.close())
  const queue = createQueue({ broker: memoryBroker(), maxDepth: 100, maxAge: '1h' })
  const part: Part = {
    options: { policies, metrics, queues: [queue], authorize: () => everything, ...admin },
    ...{ policies, metrics, store },
  }
  const { port } = await servers[framework](part)
  const call: AdminUnderTest['call'] = (method, path, asked) => callApi(port, method, path, asked)
  return {
    ...{ port, policies, metrics, queue, store, call },
    async visit(name, company = 'acme', plan = '') {
      const headers = { 'x-user': name, 'x-tenant': company, 'x-plan': plan }
      return (await ask(port, '/', { headers })).status
    },
    look: (key) => call('POST', 'keys/lookup', { body: { key } }),
    act: (action, body) => call('POST', `keys/${action}`, { body: { reason, ...body } }),
    change(action, body, version = policies.version) {
      const headers = { 'if-match': `"${version}"` }
      return call('POST', `policies/${action}`, { headers, body: { reason, ...body } })
    },
  }
}

async function callApi(
  port: number,
  method: 'GET' | 'POST',
  path: string,
  { body, headers = {}, text = JSON.stringify(body) }: CallOptions = {},
): Promise<Answered> {
  const sent: Record<string, string> =
    method === 'POST' ? { 'content-type': 'application/json', 'x-sluice-admin': '1' } : {}
  const found = await ask(port, `/limits/api/v1/${path}`, {
    ...{ method, headers: { ...sent, ...headers } },
    ...(method === 'POST' && { body: text ?? '' }),
  })
  const value = found.body === '' ? undefined : JSON.parse(found.body)
  checkAnswer(method, path, found.status, value)
  const field = (name: string) => found.field(name)
  return { status: found.status, body: value, etag: found.field('etag'), field }
}

const document = JSON.parse(readText('packages/admin/openapi.json'))
const ajv = new Ajv2020({ strict: false })
ajv.addSchema(document, 'openapi')

/** Checks an answer against the schema that openapi.json has for its status. */
function checkAnswer(method: string, path: string, status: number, value: unknown): void {
  const [plain = ''] = path.split('?')
  const name = `/${plain.replace(/^queues\/[^/]+/, 'queues/{queue}')}`
  const responses = document.paths[name]?.[method.toLowerCase()]?.responses
  if (!responses || status === 304) return
  const said = responses[status]
  expect(said, `${method} ${path} may not answer ${status}: ${JSON.stringify(value)}`).toBeDefined()
  const place = said.$ref
    ? `#/components/responses/${status}/content/application~1problem+json/schema`
    : `#/paths/${name.replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D')}/${method.toLowerCase()}/responses/${status}/content/application~1json/schema`
  const validate = ajv.getSchema(`openapi${place}`)
  if (!validate) throw new Error(`openapi.json has no schema at ${place}`)
  validate(value)
  expect(validate.errors ?? [], `${method} ${path}: ${JSON.stringify(value)}`).toEqual([])
}

/** The part that the requests of all frameworks share. */
interface WithHeaders {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** The keys of a framework, by what reads a header of its requests. */
function keysBy<Request>(header: (request: Request, name: string) => string | undefined) {
  return {
    user: user((request: Request) => header(request, 'x-user')),
    tenant: tenant((request: Request) => header(request, 'x-tenant')),
  }
}

const keys = keysBy(({ headers }: WithHeaders, name) => headers[name]?.toString())
const values = { plan: ({ headers }: WithHeaders) => headers['x-plan'] || undefined }

/** A function of the code, whose keys are no values that somebody would type. */
const login = ({ headers }: WithHeaders) => `login of ${headers['x-user']}`

const servers: Readonly<Record<Framework, (part: Part) => Promise<{ readonly port: number }>>> = {
  'express 5': (part) => expressServer(express5, part),
  'express 4': (part) => expressServer(express4, part),

  async fastify({ options, policies, metrics, store }) {
    const app = Fastify()
    await app.register(fastifyMount(createAdmin(options)), { prefix: '/limits' })
    await app.register(async (inner) => {
      await inner.register(rateLimitPlugin, { policies, store, keys, observers: [metrics] })
      inner.get('/', async () => 'ok')
    })
    onTestFinished(() => app.close())
    return { port: Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port) }
  },

  async koa({ options, policies, metrics, store }) {
    const app = new Koa()
    app.use(koaMount(createAdmin(options), '/limits'))
    app.use(koaRateLimit({ policies, store, keys, observers: [metrics] }))
    app.use((context) => {
      context.body = 'ok'
    })
    return listening(createServer(app.callback()))
  },

  async hono({ options, policies, metrics, store }) {
    const app = new Hono()
    const keys = keysBy((context: Context, name) => context.req.header(name))
    app.use('/limits/*', honoMount(createAdmin(options)))
    app.use(honoRateLimit({ policies, store, keys, observers: [metrics] }))
    app.get('/', (context) => context.text('ok'))
    return webServer(app.fetch)
  },

  async fetch({ options, policies, metrics, store }) {
    const admin = fetchMount(createAdmin(options), '/limits')
    const keys = keysBy((request: Request, name) => request.headers.get(name) ?? undefined)
    const limited = fetchRateLimit({ policies, store, keys, observers: [metrics] })
    const app = limited(async () => new Response('ok'))
    return webServer(async (request, { incoming }) => {
      const { remoteAddress } = incoming.socket
      return (await admin(request, { remoteAddress })) ?? app(request, { remoteAddress })
    })
  },
}

type WebHandler = (request: Request, bindings: HttpBindings) => Response | Promise<Response>

function webServer(fetch: WebHandler) {
  const options = { fetch: fetch as never, overrideGlobalObjects: false }
  return listening(createAdaptorServer(options) as Server)
}

function expressServer(express: typeof express5, part: Part) {
  const { options, policies, metrics, store } = part
  const app = express()
  app.use('/limits', expressMount(createAdmin(options)))
  const named = policies.file.policies?.some(({ key }) => key === 'login' || key === 'spot')
    ? { ...keys, login, spot: route() }
    : keys
  app.use(rateLimit({ policies, store, keys: named, values, observers: [metrics] }))
  app.get('/', (_request, response) => void response.send('ok'))
  return listening(createServer(app))
}

async function listening(server: Server) {
  const running = await runningOn(server.listen(0, '127.0.0.1'))
  onTestFinished(() => running.close())
  return running
}
