import {
  apiKey,
  firstOf,
  ip,
  type KeyResolver,
  type RateLimitPluginOptions,
  type RouteRateLimitOptions,
  rateLimitPlugin,
  user,
} from '@sluice/fastify'
import type { Request } from 'express'
import fastify, { type FastifyRequest } from 'fastify'

const app = fastify()
const hello = () => 'hello'
const minute = { limit: 100, window: '1m' } as const

// Functions that are written inline know the request of Fastify, inside the resolvers too.
app.register(rateLimitPlugin, { ...minute, key: (request) => request.routeOptions.url })
app.register(rateLimitPlugin, {
  ...minute,
  hook: 'preHandler',
  key: firstOf(
    user((request) => request.routeOptions.url),
    apiKey(),
    ip(),
  ),
  routes: { 'POST /login': { ...minute, key: user((request) => request.routeOptions.url) } },
})
app.get('/', { config: { rateLimit: { limit: 5, key: user((request) => request.ip) } } }, hello)

const byUrl: KeyResolver<FastifyRequest> = firstOf((request) => request.routeOptions.url, ip())
const lists: RateLimitPluginOptions = { ...minute, allow: { ips: ['10.0.0.0/8'] } }
app.register(rateLimitPlugin, { ...lists, key: byUrl })

// A resolver that reads the request of another framework.
const ofExpress = (request: Request) => request.get('x-user')
// @ts-expect-error Express' request is none of Fastify.
app.register(rateLimitPlugin, { ...minute, key: ofExpress })
// @ts-expect-error Nor inside a resolver.
user(ofExpress)
// @ts-expect-error What the request does not have is found in an inline function.
user((request) => request.get('x-user'))

// The options that all adapters share are tried in express.test-d.ts.
// @ts-expect-error
app.register(rateLimitPlugin, { ...minute, keyGenerator: byUrl })
// Fastify infers the type of `config` from what stands there, so a name that it does not know passes, until the route is declared.
// `satisfies RouteRateLimitOptions`, or an annotation, finds it before.
// @ts-expect-error
export const misspelt: RouteRateLimitOptions = { limits: 5 }
// @ts-expect-error A hook is the plugin's, and not a route's.
export const hooked: RouteRateLimitOptions = { hook: 'onRequest' }

// @ts-expect-error
app.get('/text', { config: { rateLimit: { limit: '5', window: '1m' } } }, hello)
// @ts-expect-error The handler is given Fastify's reply, which has no status().
app.register(rateLimitPlugin, { ...minute, handler: (_request, reply) => reply.sendStatus(429) })

// Forms that the runtime takes.
app.register(rateLimitPlugin, { limit: ({ ip }) => ip.length, defaultLimit: 5, window: '1m' })
app.register(rateLimitPlugin, { global: false })
app.register(rateLimitPlugin, { global: false, profiles: { named: minute } })
app.register(rateLimitPlugin, { routes: { '/x': minute } })
app.get('/b', { config: { rateLimit: { policies: ['a', { limit: 5, window: '1m' }] } } }, hello)
app.get('/c', { config: { rateLimit: { limit: 5, window: '1m', combine: 'add' } } }, hello)
app.get('/d', { config: { rateLimit: 'named' } }, hello)
app.get('/e', { config: { rateLimit: false } }, hello)
const search = { policies: [{ name: 'a', limit: 5, window: '1s' }] } satisfies RouteRateLimitOptions
app.get('/f', { config: { rateLimit: search } }, hello)

// And those that it refuses.
// @ts-expect-error No policy.
app.register(rateLimitPlugin, {})
// @ts-expect-error
app.register(rateLimitPlugin, { global: true })
// @ts-expect-error No window.
app.register(rateLimitPlugin, { limit: 3 })
