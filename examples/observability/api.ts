import { memoryStore, regionalStore, type Store } from '@sluice/core'
import { mount, rateLimit, user } from '@sluice/express'
import { collectMetrics } from '@sluice/metrics'
import { prometheus } from '@sluice/metrics/prometheus'
import { statusMonitor } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import express, { type Express, type Request, type Response } from 'express'
import { Redis } from 'ioredis'
import { Histogram, register } from 'prom-client'
import { exchangeRates, reportQueue, startVendor } from './work.ts'

/** An API whose limits, queue, calls to a vendor and client are counted by one object. Counts live in Redis where there is a URL. */
export async function observedApi(redisUrl: string | undefined): Promise<Express> {
  const redis = redisUrl ? new Redis(redisUrl) : undefined
  const storeFor = (prefix: string): Store =>
    redis ? redisStore(redis, { prefix }) : memoryStore()
  const store = storeFor('api')
  // In production, `global` is a Redis that all regions reach.
  const [local, global] = [storeFor('eu'), storeFor('global')]
  const inRegion = regionalStore({ region: 'eu', local, global, shares: { eu: 0.4, us: 0.4 } })
  const metrics = collectMetrics({ store, reveal: (key) => key })
  // Beside what the application shows already.
  prometheus(metrics, { registry: register })
  const latency = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Duration of HTTP requests',
  })

  const app = express()
  // In front of the limits, or they limit their own observers. In production, behind your authentication.
  app.get('/metrics', async (_request, response) => {
    response.type(register.contentType).send(await register.metrics())
  })
  app.get('/top', (request, response) => {
    response.json(metrics.topKeys({ policy: String(request.query.policy ?? 'items') }) ?? {})
  })
  app.use((_request, response, next) => {
    response.once('finish', latency.startTimer())
    next()
  })

  const key = user((request: Request) => request.get('x-user'))
  const shared = { store, key, observers: [metrics] }
  const answer = (_request: Request, response: Response) => void response.json({ hello: 'world' })
  app.get(
    '/items',
    rateLimit({
      ...shared,
      policies: [
        { name: 'items', limit: 50, window: '10s' },
        // Tried before it is enforced.
        { name: 'tighter', limit: 20, window: '10s', mode: 'shadow' },
      ],
    }),
    answer,
  )
  app.post(
    '/login',
    rateLimit({
      ...{ ...shared, name: 'login', limit: 5, window: '10s' },
      // Who guesses passwords is blocked for a while.
      penalty: { name: 'guesses', after: 5, within: '10s', for: '10s' },
    }),
    (_request, response) => void response.sendStatus(401),
  )
  app.get(
    '/feed',
    // While Redis is away everybody may read.
    rateLimit({ ...shared, name: 'feed', limit: 1_000, window: '10s', failureMode: 'open' }),
    answer,
  )

  app.get(
    '/world',
    rateLimit({ ...shared, store: inRegion, name: 'world', limit: 100, window: '10s' }),
    answer,
  )

  const vendor = await startVendor()
  app.get('/rates', exchangeRates({ store, metrics, vendor }))
  const { queue, admission } = reportQueue({ store, metrics, vendor, key })
  app.post(
    '/reports',
    rateLimit({ ...shared, name: 'reports', limit: 5, window: '10s', admission }),
    answer,
  )
  app.use('/jobs', mount(statusMonitor({ queue })))
  return app
}
