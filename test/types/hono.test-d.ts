import { getConnInfo } from '@hono/node-server/conninfo'
import {
  firstOf,
  ip,
  type KeyResolver,
  type RateLimitHandler,
  type RateLimitOptions,
  rateLimit,
  user,
} from '@sluice/hono'
import type { FastifyRequest } from 'fastify'
import { type Context, Hono } from 'hono'

const minute = { limit: 100, window: '1m' } as const

// Functions that are written inline know the context of Hono, inside the resolvers too: express.test-d.ts tries each of them.
rateLimit({ ...minute, key: (c) => c.req.header('x-user') })
rateLimit({ ...minute, key: user((c) => c.req.header('x-user')) })
rateLimit({
  ...minute,
  handler: (c, _next, decision) => c.json({ ms: decision.retryAfterMs }, 429),
})
rateLimit({ ...minute, addressOf: (c) => getConnInfo(c).remote.address })

// It is a middleware of Hono, and the context knows the decision.
const app = new Hono<{ Variables: { user: string } }>()
app.use(rateLimit(minute))
app.get('/', rateLimit(minute), (c) => {
  const allowed: boolean | undefined = c.get('rateLimit')?.allowed
  const name: string = c.get('user')
  return c.json({ allowed, name })
})

const byUser: KeyResolver<Context> = firstOf((c) => c.req.path, ip())
const handler: RateLimitHandler = (c) => c.text('no', 429)
const options: RateLimitOptions = { ...minute, key: byUser, handler }
rateLimit(options)

const ofFastify = (request: FastifyRequest) => request.routeOptions.url
// @ts-expect-error Fastify's request is none of Hono.
rateLimit({ ...minute, key: ofFastify })
// @ts-expect-error Nor inside a resolver.
user(ofFastify)
