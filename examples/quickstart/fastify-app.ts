import type { Store } from '@sluice/core'
import { rateLimitPlugin } from '@sluice/fastify'
import fastify, { type FastifyInstance } from 'fastify'

export function fastifyApp(store: Store): FastifyInstance {
  const app = fastify()
  app.register(rateLimitPlugin, { store, limit: 5, window: '10s' })
  app.get('/', async () => ({ hello: 'from Fastify' }))
  return app
}
