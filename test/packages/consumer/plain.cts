import { createFetch, waitFor } from '@sluice/client'
import { createLimiter, type Decision, memoryStore } from '@sluice/core'
import { apiKey, firstOf, ip, rateLimit } from '@sluice/express'
import { rateLimitPlugin } from '@sluice/fastify'
import { parseHeaders } from '@sluice/headers'
import { createQueue, memoryBroker } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import express from 'express'
import fastify from 'fastify'
import { Redis } from 'ioredis'

const app = express()
const store = redisStore(new Redis())
app.use(rateLimit({ store, key: firstOf(apiKey(), ip()), limit: 100, window: '1m' }))
app.get('/', (request, response) => {
  const allowed: boolean | undefined = request.rateLimit?.allowed
  response.json({ allowed })
})

export async function main(): Promise<Decision> {
  const service = fastify()
  await service.register(rateLimitPlugin, { limit: 100, window: '1m' })
  service.get('/health', { config: { rateLimit: false } }, async () => 'ok')
  const limiter = createLimiter({
    policies: [{ name: 'default', limit: 100, window: '1m' }],
    store: memoryStore(),
  })
  return limiter.consume('user:42')
}

export const seen: readonly unknown[] = [
  createFetch,
  waitFor,
  parseHeaders,
  createQueue,
  memoryBroker,
]

// @ts-expect-error A limit is a number or a function, never a text.
rateLimit({ limit: '100', window: '1m' })
