import { createFetchGuard } from '@sluice/fetch/adapter'
import { type Handler, type Limiting, withLimiter } from '@sluice/http'
import type { Context, MiddlewareHandler, Next } from 'hono'
import { HonoContext } from './context.ts'
import type { RateLimitOptions } from './options.ts'

/** Hono middleware, and its limiter. */
export type RateLimit = MiddlewareHandler & Limiting<[context: Context]>

/**
 * Middleware that limits requests.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const guard = createFetchGuard(options)
  const { addressOf } = options

  async function sluiceRateLimit(context: Context, next: Next): Promise<Response | undefined> {
    // Not by `hono/route`: it fails if the app loaded Hono in the other format, CommonJS or ESM.
    const matched = context.req.matchedRoutes[context.req.routeIndex]
    const asked = new HonoContext(context, next, { addressOf, matched })
    try {
      const answer = await asked.decide(guard)
      if (answer) return answer
      await next()
    } catch (error) {
      asked.fail()
      throw error
    }
    const response = asked.finish(context.res)
    if (response !== context.res) {
      // Otherwise Hono would copy the previous response's headers into it.
      context.res = undefined
      context.res = response
    }
    return undefined
  }

  return withLimiter(sluiceRateLimit, guard, (context: Context) => {
    // The handler may be on a different route than the limiter.
    const matched = context.req.matchedRoutes.find(({ handler }) => handler === sluiceRateLimit)
    return new HonoContext(context, async () => undefined, { addressOf, matched })
  })
}

/**
 * Middleware that serves a handler under the path where it is mounted.
 * @example
 * app.use('/limits/*', mount(handler))
 */
export function mount(handler: Handler<Request>): MiddlewareHandler {
  return async function sluiceHandler(context, next) {
    const prefix = context.req.routePath.replace(/\/?\*$/, '')
    return (await new HonoContext(context, next).answerBy(handler, prefix)) ?? next()
  }
}
