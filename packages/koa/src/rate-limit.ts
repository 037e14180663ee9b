import { fieldsOn, setFields } from '@sluice/http'
import type { Handler, Limiting } from '@sluice/http/adapter'
import {
  beforeHead,
  createGuard,
  mountedReply,
  serve,
  throwingObjects,
  withLimiter,
} from '@sluice/http/adapter'
import type { Context, Middleware, Next } from 'koa'
import { KoaContext } from './context.ts'
import type { RateLimitHandler, RateLimitOptions } from './options.ts'

/** Koa middleware, with its limiter. */
export interface RateLimit extends Limiting<[context: Context]> {
  (context: Context, next: Next): Promise<void>
}

/**
 * Middleware that limits requests.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const guard = createGuard<Context, RateLimitHandler>(options)

  async function sluiceRateLimit(context: Context, next: Next): Promise<void> {
    const asked = new KoaContext(context, next, sluiceRateLimit)
    if (!(await throwingObjects(() => serve(asked, guard)))) return
    try {
      await next()
    } catch (error) {
      // Koa removes all fields from an error response.
      beforeHead(context.res, () => setFields(context.res, fieldsOn(asked.shown, context.res)))
      throw error
    }
  }

  return withLimiter(sluiceRateLimit, guard, (context: Context) => {
    return new KoaContext(context, async () => undefined, sluiceRateLimit)
  })
}

/**
 * Middleware that serves a handler, optionally under a path.
 * @example
 * app.use(mount(handler, '/limits'))
 */
export function mount(handler: Handler<Context>, prefix = ''): Middleware {
  return async function sluiceHandler(context, next) {
    const reply = await mountedReply(handler, new KoaContext(context, next, sluiceHandler), prefix)
    if (!reply) return next()
    context.status = reply.status
    context.set({ ...reply.headers })
    const { body } = reply
    // Without a body, Koa would change the status to 204.
    context.body = typeof body === 'object' ? Buffer.from(body) : (body ?? '')
  }
}
