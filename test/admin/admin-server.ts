import { type AdminOptions, createAdmin, type Granted } from '@sluice/admin'
import { memoryStore, type Store } from '@sluice/core'
import { mount, rateLimitPlugin } from '@sluice/fastify'
import { route, tenant, user } from '@sluice/http'
import { collectMetrics } from '@sluice/metrics'
import { createQueue, memoryBroker } from '@sluice/queue'
import { Ajv2020 } from 'ajv/dist/2020.js'
import express5 from 'express'
import express4 from 'express4'
import Fastify from 'fastify'
import Koa from 'koa'
import { expect, onTestFinished } from 'vitest'
import { ask } from '../adapters/ask.ts'
import type { Driver, NativeRequest } from '../adapters/drivers/driver.ts'
import { expressDriver } from '../adapters/drivers/express-driver.ts'
import { fetchDriver } from '../adapters/drivers/fetch-driver.ts'
import { honoDriver } from '../adapters/drivers/hono-driver.ts'
import { koaDriver } from '../adapters/drivers/koa-driver.ts'
import { openInTest } from '../policies/live-policies.ts'
import { readText } from '../support/workspace.ts'

/** With the limits in a scope of their own: those of the whole application would count the admin API, too. */
const fastifyDriver: Driver = {
  name: 'Fastify 5',
  async start({ limits: [limits] = [], mounts = [] }) {
    const app = Fastify()
    for (const [prefix, handler] of mounts) await app.register(mount(handler), { prefix })
    await app.register(async (inner) => {
      await inner.register(rateLimitPlugin, limits as never)
      inner.get('/', async () => 'ok')
    })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: Number(new URL(url).port), server: app.server, close: () => app.close() }
  },
}

const express5Driver = expressDriver('Express 5', express5)

export const frameworks: readonly Driver[] = [
  express5Driver,
  expressDriver('Express 4', express4),
  ...[fastifyDriver, koaDriver('Koa 3', Koa), honoDriver, fetchDriver],
]

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

const headerOf = (name: string) => (request: unknown) =>
  (request as NativeRequest).headers[name]?.toString() || undefined
const keys = { user: user(headerOf('x-user')), tenant: tenant(headerOf('x-tenant')) }
/** Those of a function of the code, whose values nobody would type, and of a route. */
const moreKeys = {
  login: (request: unknown) => `login of ${headerOf('x-user')(request)}`,
  spot: route(),
  key: keys.tenant,
}

export type AdminUnderTest = Awaited<ReturnType<typeof startAdmin>>

const reason = 'a test'

interface CallOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The body as it is sent. @default that of `body`, as JSON */
  readonly text?: string
}

interface StartOptions {
  /** @default Express 5 */
  readonly framework?: Driver
  readonly file?: string
  readonly store?: Store
  /** @default may do everything */
  readonly admin?: AdminOptions
}

/** Starts an application with limits that change and the admin API under /limits, until the test is over. */
export async function startAdmin(options: StartOptions = {}) {
  const {
    framework = express5Driver,
    file = wholeFile,
    store = memoryStore(),
    admin = {},
  } = options
  const { policies } = await openInTest(file, store)
  const metrics = collectMetrics({ store })
  onTestFinished(() => metrics.close())
  const queue = createQueue({ broker: memoryBroker(), maxDepth: 100, maxAge: '1h' })
  const all = { policies, metrics, queues: [queue], authorize: () => everything, ...admin }
  const isNamed = policies.file.policies?.some(({ key }) => String(key) in moreKeys)
  const limits = {
    ...{ policies, store, observers: [metrics], values: { plan: headerOf('x-plan') } },
    keys: isNamed ? { ...keys, ...moreKeys } : keys,
  }
  const mounts = [['/limits', createAdmin(all)]] as const
  const { port, close } = await framework.start({ limits: [limits as never], mounts })
  onTestFinished(close)

  /** Asks the API, and checks the answer against openapi.json. */
  async function call(
    method: 'GET' | 'POST',
    path: string,
    { body, headers = {}, text = JSON.stringify(body) }: CallOptions = {},
  ) {
    const sent: Record<string, string> =
      method === 'POST' ? { 'content-type': 'application/json', 'x-sluice-admin': '1' } : {}
    const found = await ask(port, `/limits/api/v1/${path}`, {
      ...{ method, headers: { ...sent, ...headers } },
      ...(method === 'POST' && { body: text ?? '' }),
    })
    const value = found.body === '' ? undefined : JSON.parse(found.body)
    checkAnswer(method, path, found.status, value)
    const { status, field } = found
    return { status, body: value, etag: field('etag'), field }
  }

  return {
    ...{ port, policies, metrics, queue, store, call },
    /** Asks the application behind the limiter. */
    async visit(user: string, company = 'acme', plan = '') {
      const headers = { 'x-user': user, 'x-tenant': company, 'x-plan': plan }
      return (await ask(port, '/', { headers })).status
    },
    look: (key: unknown) => call('POST', 'keys/lookup', { body: { key } }),
    /** Acts on keys, for a reason: `reset`. */
    act: (action: string, body: object) =>
      call('POST', `keys/${action}`, { body: { reason, ...body } }),
    /** Changes policies, for a reason: `changes`, `rollback` or `kill`. @param version that is replaced */
    change(action: string, body: object, version = policies.version) {
      const headers = { 'if-match': `"${version}"` }
      return call('POST', `policies/${action}`, { headers, body: { reason, ...body } })
    },
  }
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
