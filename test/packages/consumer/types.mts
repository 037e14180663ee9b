import { type ClientOptions, createFetch, waitFor } from '@sluice/client'
import { createLimiter, memoryStore } from '@sluice/core'
import { apiKey, rateLimit } from '@sluice/express'
import fastifyPlugin, { rateLimitPlugin } from '@sluice/fastify'
import { createOutbound, type Outbound } from '@sluice/outbound'
import { type Broker, bullmqBroker, memoryBroker } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import {
  adapterConformance,
  brokerConformance,
  expectLimited,
  type FakeClock,
  fakeClock,
  type ServedApp,
  storeConformance,
} from '@sluice/testing'
import express from 'express'
import fastify from 'fastify'
import { Redis } from 'ioredis'
import { createClient } from 'redis'

const app = express()
app.use(rateLimit({ limit: 100, window: '1m' }))
app.use(rateLimit({ store: redisStore(new Redis()), key: apiKey(), limit: 10, window: '1s' }))
app.get('/', (request, response) => {
  const allowed: boolean | undefined = request.rateLimit?.allowed
  response.json({ allowed })
})

const service = fastify()
await service.register(rateLimitPlugin, { limit: 100, window: '1m' })
await service.register(fastifyPlugin, { store: redisStore(createClient()), limit: 5, window: 1000 })
service.get('/search', { config: { rateLimit: { limit: 5, window: '1m' } } }, async (request) => {
  const allowed: boolean | undefined = request.rateLimit?.allowed
  return { allowed }
})
service.get('/health', { config: { rateLimit: false } }, async () => 'ok')

export const vendor: Outbound = createOutbound({ name: 'a', limits: [{ limit: 5, window: '1s' }] })

const limiter = createLimiter({ limit: 100, window: '1m', store: memoryStore() })
const decision = await limiter.consume('user:42', { cost: 5 })
const waits: (number | undefined)[] = decision.outcomes.map((outcome) => outcome.retryAfterMs)

const onWait = { onWait: ({ waitMs }: { waitMs: number }) => console.log(waitMs) }
const clientOptions: ClientOptions = { retries: 2, observers: onWait }
const patient: typeof fetch = createFetch(clientOptions)
const finished: Response = await waitFor(await patient('https://api.example.com/jobs'), {
  fetch: patient,
})
export const brokers: readonly Broker[] = [
  memoryBroker(),
  bullmqBroker({ connection: 'redis://localhost' }),
]

// @ts-expect-error A limit is a number or a function, never a text.
rateLimit({ limit: '100', window: '1m' })
// @ts-expect-error An option that does not exist is found by the compiler.
rateLimit({ limit: 100, window: '1m', windowMs: 1000 })

export const seen: readonly unknown[] = [decision.allowed, decision.retryAfterMs, waits, finished]

export const clock: FakeClock = fakeClock({ now: 0 })
const { retryAfterMs } = await expectLimited(new Response(), { policy: 'burst' })
export const waitMs: number | undefined = retryAfterMs
const runner = { describe: (_name: string, _body: () => void) => undefined, it: () => undefined }
storeConformance({
  ...runner,
  open: (now) => ({ store: now() > 0 ? memoryStore() : memoryStore() }),
})
brokerConformance({ ...runner, open: () => ({ broker: memoryBroker() }) })
adapterConformance({
  ...runner,
  serve({ limits }): ServedApp {
    for (const options of limits) app.use(rateLimit(options))
    return { url: '', close: () => undefined }
  },
})
