import {
  firstOf,
  ip,
  type KeyResolver,
  type RateLimitHandler,
  type RateLimitOptions,
  rateLimit,
  user,
} from '@sluice/koa'
import type { FastifyRequest } from 'fastify'
import Koa, { type Context } from 'koa'

const minute = { limit: 100, window: '1m' } as const

// Functions that are written inline know the context of Koa, inside the resolvers too: express.test-d.ts tries each of them.
rateLimit({ ...minute, key: (ctx) => ctx.get('x-user') })
rateLimit({ ...minute, key: user((ctx) => ctx.state.user?.id) })
rateLimit({ ...minute, handler: (ctx, _next, decision) => (ctx.body = decision.retryAfterMs) })

// It is a middleware of Koa, and the context knows the decision.
const app = new Koa()
app.use(rateLimit(minute))
app.use((ctx) => {
  const allowed: boolean | undefined = ctx.rateLimit?.allowed
  ctx.body = { allowed }
})

const byUser: KeyResolver<Context> = firstOf((ctx) => ctx.get('x-user'), ip())
const handler: RateLimitHandler = (ctx) => ctx.throw(429)
const options: RateLimitOptions = { ...minute, key: byUser, handler }
rateLimit(options)

const ofFastify = (request: FastifyRequest) => request.routeOptions.url
// @ts-expect-error Fastify's request is none of Koa.
rateLimit({ ...minute, key: ofFastify })
// @ts-expect-error Nor inside a resolver.
user(ofFastify)
