import { Readable } from 'node:stream'
import { rateLimitPlugin, user } from '@sluice/fastify'
import fastify, { type FastifyInstance } from 'fastify'
import { askOf, moneyOf, tokensOf } from './ask.ts'
import { callVendor } from './paid-answer.ts'

/** The same proxy on Fastify. */
export async function fastifyProxy(vendor: string): Promise<FastifyInstance> {
  const app = fastify()
  await app.register(rateLimitPlugin, {
    // The body determines the units, and Fastify has read it before this hook.
    hook: 'preHandler',
    key: user((request) => request.headers['x-user']?.toString()),
    policies: [
      { name: 'tokens', limit: 1_000, window: '1m', reserve: ({ body }) => tokensOf(body) },
      { name: 'money', limit: 20_000, window: '1d', reserve: ({ body }) => moneyOf(body) },
    ],
  })
  app.post('/v1/*', async (request, reply) => {
    const ask = askOf(request.body)
    if (!ask || !request.rateLimit) {
      return reply.code(400).send({ error: 'max_tokens or messages are missing' })
    }
    const events = await callVendor(vendor + request.url, ask, request.rateLimit)
    if (!events) return reply.code(502).send({ error: 'the vendor failed' })
    return reply.type('text/event-stream').send(Readable.from(events))
  })
  return app
}
