import { request } from 'node:http'
import { createAdmin } from '@sluice/admin'
import { mount, rateLimit, tenant, user } from '@sluice/express'
import { collectMetrics } from '@sluice/metrics'
import { openPolicies } from '@sluice/policies'
import { createQueue, createWorker, memoryBroker } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import express, { type Request } from 'express'
import { Redis } from 'ioredis'
import { policyFolder } from '../../policies/policy-folder.ts'
import { type Served, serve } from '../../support/serve.ts'
import { until } from '../../support/until.ts'

/** Every policy has another limit, window or algorithm, so that the page has something to show. */
const file = `
policies:
  - { name: sustained, limit: { tiers: { free: 600, pro: 6000 }, by: plan, default: 60 }, window: 10m, key: user }
  - { name: address, limit: 5000, window: 10m }
routes:
  POST /login: { policies: [{ name: login, limit: 5, window: 15m, key: user }], combine: add }
  GET /search: { policies: [{ name: search, algorithm: token-bucket, limit: 30, burst: 60, window: 10m, key: tenant }], combine: add }
  POST /exports: { policies: [{ name: exports, limit: 2, window: 10m, key: tenant, mode: shadow }], combine: add }
  /health: false
penalty: { after: 500, within: 1m, for: 10m, key: user }
overrides:
  - { policy: sustained, key: { user: batch }, limit: 20000, until: 2096-12-31T23:59:59Z, reason: nightly import }
`

export type LimitedApi = Awaited<ReturnType<typeof startLimitedApi>>

/** Starts an API on Redis with the admin in front of its limits. @param path of the mount */
export async function startLimitedApi(redisUrl: string, path = '/limits') {
  const redis = new Redis(redisUrl)
  const store = redisStore(redis)
  const metrics = collectMetrics({
    store,
    reveal: (key) => key.replace(/^@/, '').replace('/', ' '),
  })
  const policies = await openPolicies({ file: await policyFolder(file), store })
  const queue = createQueue({ broker: memoryBroker({ name: 'reports' }) })
  const worker = createWorker({
    broker: queue.broker,
    attempts: 1,
    handler: () => Promise.reject(new Error('the printer answered 502 Bad Gateway')),
  })
  const admin = createAdmin({
    ...{ policies, metrics, queues: [queue] },
    authorize: () => ({ actor: 'ada@example.com', may: ['read', 'keys', 'policies'] }),
  })
  const app = express()
  app.use(path, mount(admin))
  const keys = {
    user: user((request: Request) => request.get('x-user')),
    tenant: tenant((request: Request) => request.get('x-tenant')),
  }
  const values = { plan: (request: Request) => request.get('x-plan') }
  app.use(rateLimit({ policies, store, observers: [metrics], keys, values }))
  app.use((_request, response) => void response.send('ok'))
  for (const page of [1, 2, 3]) await queue.enqueue({ identity: `user ${page}`, payload: { page } })
  await until('there are dead letters', async () => (await queue.depth()).dead === 3)
  let server = await serve(app)
  const { port } = server
  const origin = `http://127.0.0.1:${port}`
  /** Stops listening, and cuts connections: the page is offline. */
  const leave = (): Promise<void> => server.close()
  return {
    ...{ origin, policies, leave },
    page: `${origin}${path === '/' ? '' : path}/`,
    /** Sends a request as somebody. @returns the status */
    async ask(method: string, path: string, headers: Record<string, string> = {}) {
      const { status } = await fetch(origin + path, { method, headers })
      return status
    },
    async comeBack() {
      server = await serve(app, port)
    },
    async [Symbol.asyncDispose]() {
      await leave()
      await worker.close()
      await policies.close()
      metrics.close()
      redis.disconnect()
    },
  }
}

/** Starts a proxy that takes the first part of the path away, as Ingresses do. */
export function startProxy(target: string, prefix: string): Promise<Served> {
  return serve((incoming, outgoing) => {
    const path = (incoming.url ?? '').slice(prefix.length)
    const { method, headers } = incoming
    const passed = request(`${target}${path}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    passed.on('error', () => outgoing.writeHead(502).end())
    incoming.pipe(passed)
  })
}
