// Fastify: a limit for everybody by address, routes with limits of their own, and one without.
import { apiKey, firstOf, ip, type RouteRateLimitOptions, rateLimitPlugin } from '@sluice/fastify'
import { redisStore } from '@sluice/redis'
import fastify from 'fastify'
import { createClient } from 'redis'

const url = process.env.REDIS_URL
const shared = url ? { store: redisStore(await createClient({ url }).connect()) } : {}
const app = fastify()

// Everything, unknown URLs too: 100 requests a minute for each address.
await app.register(rateLimitPlugin, { ...shared, limit: 100, window: '1m' })

// A route's own limit replaces the one above.
app.post(
  '/login',
  { config: { rateLimit: { limit: 5, window: '1m' } } },
  async (_request, reply) => {
    return reply.code(401).send({ error: 'wrong password' })
  },
)

// Two quotas at once, all or nothing, by API key, else by address. A search costs 5 units.
const search = {
  key: firstOf(apiKey(), ip()),
  cost: 5,
  policies: [
    { name: 'burst', limit: 10, window: '1s' },
    { name: 'sustained', limit: 600, window: '1m' },
  ],
} satisfies RouteRateLimitOptions
app.get('/api/search', { config: { rateLimit: search } }, async (request) => {
  return { left: request.rateLimit?.outcomes.map(({ remaining }) => remaining) }
})

app.get('/health', { config: { rateLimit: false } }, async () => 'ok')

const address = await app.listen({ port: Number(process.env.PORT ?? 3000) })
console.log(`listening on ${new URL(address).port}`)
