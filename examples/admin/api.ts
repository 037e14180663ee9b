import { createAdmin } from '@sluice/admin'
import { memoryStore, mount, rateLimit, regionalStore, type Store, user } from '@sluice/express'
import { collectMetrics } from '@sluice/metrics'
import { prometheus } from '@sluice/metrics/prometheus'
import { openPolicies } from '@sluice/policies'
import { statusMonitor } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import express, { type Express, type Request, type Response } from 'express'
import { Redis } from 'ioredis'
import { Histogram, register } from 'prom-client'
import { exchangeRates, reportQueue, startVendor } from './work.ts'

/** An API with the admin page. One object collects metrics of its limits, queue, vendor calls and client. */
export async function limitedApi(file: string, redisUrl: string | undefined): Promise<Express> {
  const redis = redisUrl ? new Redis(redisUrl) : undefined
  const storeFor = (prefix: string): Store =>
    redis ? redisStore(redis, { prefix }) : memoryStore()
  const store = storeFor('api')
  const policies = await openPolicies({
    file,
    store,
    observers: {
      onVersion: (version) => console.log(`version ${version} is now active`),
      onRefused: ({ message }) => console.log(`the old version still applies:\n${message}`),
    },
  })
  // User names are not secret here; without `reveal`, the page shows digests.
  const metrics = collectMetrics({ store, reveal: (name) => name.replace('@user/', 'user ') })
  // In addition to the application's own metrics.
  prometheus(metrics, { registry: register })
  const latency = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Duration of HTTP requests',
  })
  const key = user((request: Request) => request.get('x-user'))
  const vendor = await startVendor()
  const { queue, admission } = reportQueue({ store, metrics, vendor, key })

  const app = express()
  // In front of the limits, so that the admin page is not limited. In production, put it behind your authentication.
  app.use(
    '/limits',
    mount(createAdmin({ policies, metrics, queues: [queue], authorize: 'localhost' })),
  )
  app.get('/metrics', async (_request, response) => {
    response.type(register.contentType).send(await register.metrics())
  })
  app.use((_request, response, next) => {
    response.once('finish', latency.startTimer())
    next()
  })

  // Limits in code, for what a policy file cannot express.
  const answer = (_request: Request, response: Response) => void response.json({ answer: 42 })
  const shared = { store, key, observers: [metrics] }
  app.get(
    '/feed',
    // While Redis is down, everybody may read.
    rateLimit({ ...shared, name: 'feed', limit: 1_000, window: '10s', failureMode: 'open' }),
    answer,
  )
  // In production, `global` is a Redis that all regions can reach.
  const [local, global] = [storeFor('eu'), storeFor('global')]
  const inRegion = regionalStore({ region: 'eu', local, global, shares: { eu: 0.4, us: 0.4 } })
  app.get(
    '/world',
    rateLimit({ ...shared, store: inRegion, name: 'world', limit: 100, window: '10s' }),
    answer,
  )
  app.get('/rates', exchangeRates({ store, metrics, vendor }))
  app.post(
    '/reports',
    rateLimit({ ...shared, name: 'reports', limit: 5, window: '10s', admission }),
    answer,
  )
  app.use('/jobs', mount(statusMonitor({ queue })))

  // The file limits all other routes.
  app.use(rateLimit({ policies, store, keys: { user: key }, observers: [metrics] }))
  app.post('/login', (_request, response) => void response.sendStatus(401))
  app.all('/{*path}', answer)
  return app
}
