import {
  all,
  apiKey,
  durationMs,
  firstOf,
  ip,
  type KeyResolver,
  memoryStore,
  type RateLimitOptions,
  rateLimit,
  route,
  tenant,
  tiers,
  user,
} from '@sluice/express'
import type { Request } from 'express'
import type { FastifyRequest } from 'fastify'

// Compiled by `tsc -p test`, and never run: each line below an expected error must be one, and nothing else may be.

const minute = { limit: 100, window: '1m' } as const

// Functions that are written inline know the request of Express, inside the resolvers too.
rateLimit({ ...minute, key: (req) => req.get('x-user') })
rateLimit({
  ...minute,
  key: firstOf(
    all(
      tenant((req) => req.get('x-tenant')),
      (req) => req.get('x-user'),
      route(),
    ),
    user((req) => req.get('x-user')),
    (req) => req.ip,
    apiKey(),
    ip(),
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
// @ts-expect-error Nor for a penalty.
rateLimit({ ...minute, penalty: { after: 3, within: '1m', for: '5m', key: ofFastify } })
// @ts-expect-error What the request does not have is found in an inline function.
rateLimit({ ...minute, key: firstOf((req) => req.routeOptions.url, ip()) })

// Names of options.
// @ts-expect-error
rateLimit({ ...minute, keyGenerator: byUser })
// @ts-expect-error
rateLimit({ ...minute, routes: { '/x': { limits: 5 } } })

// Types of options.
// @ts-expect-error A factory makes a resolver, and is none.
rateLimit({ ...minute, key: user })
// @ts-expect-error A plain function yields text.
rateLimit({ ...minute, key: () => 42 })
// @ts-expect-error
rateLimit({ ...minute, routes: { '/x': true } })
// @ts-expect-error The handler is given Express' response, which has no code().
rateLimit({ ...minute, handler: (_req, res) => res.code(429) })

const options: RateLimitOptions = { ...minute, skip: (req) => req.ip === '127.0.0.1' }
rateLimit(options)

// Forms that the runtime takes.
const perTier = (req: Request) => req.get('x-plan')
const perPlan = (req: Request) => (req.get('x-plan') === 'paid' ? 100 : 10)
rateLimit({ limit: perPlan, defaultLimit: 10, window: '1m' })
rateLimit({ limit: async (req) => Number(req.get('x-limit')), defaultLimit: 10, window: '1m' })
rateLimit({ limit: tiers({ paid: 100, default: 10 }, (req) => req.get('x-plan')), window: '1m' })
rateLimit({ limit: tiers({ paid: 100 }, perTier), defaultLimit: 10, window: '1m' })
rateLimit({ policies: [{ limit: perPlan, defaultLimit: 10, window: '1m' }], headers: [] })
rateLimit({ routes: { '/x': minute, '/y': 'named', '/z': false, '/w': { policies: ['named'] } } })
rateLimit({ ...minute, routes: { '/x': { headers: [] }, '/y': { limit: 5 } } })
rateLimit({ ...minute, profiles: { named: { limit: perPlan, defaultLimit: 10, window: '1m' } } })
rateLimit({ penalty: { after: 3, within: '1m', for: '5m' } })
rateLimit({ ...minute, penalty: false, window: durationMs(process.env.WINDOW ?? '1m', 'WINDOW') })
export const ours = (more: RateLimitOptions) => rateLimit({ store: memoryStore(), ...more })

// And those that it refuses.
// @ts-expect-error No policy.
rateLimit({})
// @ts-expect-error No window.
rateLimit({ limit: 3 })
// @ts-expect-error No policy beside the settings.
rateLimit({ headers: ['draft-7'] })
// @ts-expect-error The shorthand beside a list.
rateLimit({ ...minute, policies: [minute] })
// @ts-expect-error A function may yield no limit.
rateLimit({ limit: perPlan, window: '1m' })
// @ts-expect-error
rateLimit({ policies: [{ limit: perPlan, window: '1m' }] })
// @ts-expect-error
rateLimit({ ...minute, routes: { '/x': { limit: perPlan, window: '1m' } } })
// @ts-expect-error
rateLimit({ ...minute, routes: { '/x': { limit: 3, policies: [minute] } } })
// @ts-expect-error
rateLimit({ ...minute, profiles: { heavy: { limit: 3 } } })
// @ts-expect-error A profile has its name already.
rateLimit({ ...minute, profiles: { heavy: { ...minute, name: 'other' } } })
// @ts-expect-error No penalty is nothing to limit with.
rateLimit({ penalty: false })
