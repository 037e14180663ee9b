// Fastify: a limit for everybody by address, routes with their own limits, and one without.
import {
  all,
  apiKey,
  firstOf,
  ip,
  type RouteRateLimitOptions,
  rateLimitPlugin,
  user,
} from '@sluice/fastify'
import { redisStore } from '@sluice/redis'
import fastify from 'fastify'
import { createClient } from 'redis'

const url = process.env.REDIS_URL
const shared = url ? { store: redisStore(await createClient({ url }).connect()) } : {}
const app = fastify()

// Everything, unknown URLs too: 100 requests a minute for each address.
await app.register(rateLimitPlugin, { ...shared, limit: 100, window: '1m' })

// Logins: 5 attempts per minute for an account from one address, and 20 for the address. The account is in the body, which Fastify has read before
// `preHandler`, so route limits are checked there. The address is counted earlier, in `onRequest`.
await app.register(rateLimitPlugin, { ...shared, hook: 'preHandler', global: false })
const account = user((request) => {
  const { body } = request
  return typeof body === 'object' && body !== null && 'name' in body ? String(body.name) : undefined
})
const logins = {
  policies: [
    { limit: 5, window: '1m', key: all(account, ip()) },
    { limit: 20, window: '1m', key: ip() },
  ],
} satisfies RouteRateLimitOptions
app.post('/login', { config: { rateLimit: logins } }, async (_request, reply) => {
  return reply.code(401).send({ error: 'wrong password' })
})

// Stands in for a database: anybody can make up a key, so only issued keys count.
const issued = new Set(['a', 'b'])

// Two quotas at once, all or nothing, by API key, otherwise by address. A search costs 5 units.
const search = {
  key: firstOf(apiKey({ verify: (key) => issued.has(key) }), ip()),
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
