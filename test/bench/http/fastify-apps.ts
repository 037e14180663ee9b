import fastifyRateLimit from '@fastify/rate-limit'
import { apiKey, rateLimitPlugin } from '@sluice/fastify'
import { redisStore } from '@sluice/redis'
import fastify, { type FastifyInstance } from 'fastify'
import { clientHeader, type HttpApps, secret } from './http-contenders.ts'

export const fastifyApps: HttpApps = {
  bare: () => listen(fastify()),

  /** With the defaults: draft-11 and legacy headers, a problem body. */
  async sluice({ redis, prefix, limit, windowMs, onStoreError }) {
    const app = fastify()
    await app.register(rateLimitPlugin, {
      policies: [{ limit, window: windowMs }],
      observers: { onStoreError: ({ error }) => onStoreError?.(error) },
      key: apiKey({ header: clientHeader, verify: false }),
      ...(redis && { store: redisStore(redis, { prefix, secret }) }),
    })
    return listen(app)
  },

  /** With its defaults: legacy headers. */
  async peer({ redis, prefix, limit, windowMs }) {
    const app = fastify()
    await app.register(fastifyRateLimit, {
      ...{ max: limit, timeWindow: windowMs },
      keyGenerator: (request) => String(request.headers[clientHeader]),
      ...(redis && { redis, nameSpace: `${prefix}:` }),
    })
    return listen(app)
  },
}

async function listen(app: FastifyInstance): Promise<number> {
  app.get('/', async () => ({ hello: 'world' }))
  return Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port)
}
