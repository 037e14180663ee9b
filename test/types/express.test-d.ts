import {
  all,
  apiKey,
  firstOf,
  ip,
  type KeyResolver,
  type RateLimitOptions,
  rateLimit,
  route,
  tenant,
  user,
} from '@sluice/express'
import type { Request } from 'express'
import type { FastifyRequest } from 'fastify'

// Compiled by `tsc -p test`, and never run: each line below an expected error must be one, and nothing else may be.

const minute = { limit: 100, window: '1m' } as const

// Functions that are written inline know the request of Express, inside the resolvers too.
rateLimit({ ...minute, key: (req) => req.get('x-user') })
rateLimit({ ...minute, key: async (req) => req.get('x-user') })
rateLimit({ ...minute, key: user((req) => req.get('x-user')) })
rateLimit({ ...minute, key: user(async (req) => Number(req.get('x-user'))) })
rateLimit({ ...minute, key: user(() => 42n) })
rateLimit({ ...minute, key: tenant((req) => req.get('x-tenant')) })
rateLimit({ ...minute, key: firstOf((req) => req.get('x-user'), ip()) })
rateLimit({
  ...minute,
  key: firstOf(
    user((req) => req.get('x-user')),
    apiKey(),
    ip(),
  ),
})
rateLimit({
  ...minute,
  key: all(
    tenant((req) => req.get('x-tenant')),
    route(),
  ),
})
rateLimit({
  ...minute,
  key: firstOf(
    all((req) => req.get('x-user'), ip()),
    (req) => req.ip,
  ),
})
rateLimit({ policies: [{ ...minute, key: firstOf((req) => req.get('x-user'), ip()) }] })
rateLimit({
  ...minute,
  routes: { 'POST /login': { ...minute, key: user((req) => req.get('x-user')) } },
})

// A resolver on its own is one of Express' requests.
const byUser: KeyResolver<Request> = firstOf((req) => req.get('x-user'), ip())
rateLimit({ ...minute, key: byUser })
rateLimit({ ...minute, allow: { ips: ['10.0.0.0/8'], keys: ['@user/42'] }, block: { keys: [] } })

// A resolver that reads the request of another framework.
const ofFastify = (request: FastifyRequest) => request.routeOptions.url
// @ts-expect-error Fastify's request is none of Express.
rateLimit({ ...minute, key: ofFastify })
// @ts-expect-error Nor inside a resolver.
user(ofFastify)
// @ts-expect-error Nor in a list of them.
firstOf(ofFastify, ip())
// @ts-expect-error Nor in a route.
rateLimit({ ...minute, routes: { '/x': { key: ofFastify } } })
// @ts-expect-error What the request does not have is found in an inline function.
rateLimit({ ...minute, key: firstOf((req) => req.routeOptions.url, ip()) })

// Names of options.
// @ts-expect-error
rateLimit({ ...minute, keyGenerator: byUser })
// @ts-expect-error
rateLimit({ ...minute, hook: 'onRequest' })
// @ts-expect-error
rateLimit({ ...minute, allow: { ip: ['10.0.0.0/8'] } })
// @ts-expect-error
rateLimit({ ...minute, routes: { '/x': { limits: 5 } } })
// @ts-expect-error
ip({ prefix: 64 })

// Types of options.
// @ts-expect-error
rateLimit({ limit: '100', window: '1m' })
// @ts-expect-error
rateLimit({ ...minute, key: 'ip' })
// @ts-expect-error A factory makes a resolver, and is none.
rateLimit({ ...minute, key: user })
// @ts-expect-error A plain function yields text.
rateLimit({ ...minute, key: () => 42 })
// @ts-expect-error An id is text or a number.
user(() => ({ id: 42 }))
// @ts-expect-error
rateLimit({ ...minute, allow: ['10.0.0.0/8'] })
// @ts-expect-error
rateLimit({ ...minute, block: { ips: [10] } })
// @ts-expect-error
rateLimit({ ...minute, onMissingKey: 'ignore' })
// @ts-expect-error
rateLimit({ ...minute, algorithm: 'sliding-window' })
// @ts-expect-error
rateLimit({ ...minute, routes: { '/x': true } })
// @ts-expect-error The handler is given Express' response, which has no code().
rateLimit({ ...minute, handler: (_req, res) => res.code(429) })

const options: RateLimitOptions = { ...minute, skip: (req) => req.ip === '127.0.0.1' }
rateLimit(options)
