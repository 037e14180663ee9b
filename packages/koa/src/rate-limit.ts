import { fieldsOn, setFields } from '@sluice/http'
import {
  beforeHead,
  createGuard,
  type Handler,
  handlerRequest,
  hideOnRedirect,
  type Limiting,
  laxRouting,
  serve,
  throwingObjects,
  withLimiter,
} from '@sluice/http/adapter'
import type { Context, Middleware, Next } from 'koa'
import { KoaContext } from './context.ts'
import type { RateLimitHandler, RateLimitOptions } from './options.ts'

/** Middleware of Koa, and the limiter behind it. */
export interface RateLimit extends Limiting<[context: Context]> {
  (context: Context, next: Next): Promise<void>
}

/**
 * Middleware that limits requests.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const place = { where: 'rateLimit', routing: laxRouting }
  const guard = createGuard<Context, RateLimitHandler>(options, place)

  async function sluiceRateLimit(context: Context, next: Next): Promise<void> {
    const asked = new KoaContext(context, next, sluiceRateLimit)
    if (guard.hidesOnRedirect) beforeHead(context.res, (status) => hideOnRedirect(asked, status))
    if (!(await throwingObjects(() => serve(asked, guard.check)))) return
    try {
      await next()
    } catch (error) {
      // Koa takes all fields off the response to an error.
      const { response } = asked
      beforeHead(context.res, () => setFields(response, fieldsOn(asked.shown, response)))
      throw error
    }
  }

  return withLimiter(sluiceRateLimit, guard, (context: Context) => {
    return new KoaContext(context, async () => undefined, sluiceRateLimit)
  })
}

/**
 * Middleware that serves a handler, under a path where one is given.
 * @example
 * app.use(mount(handler, '/limits'))
 */
export function mount(handler: Handler<Context>, prefix = ''): Middleware {
  return async function sluiceHandler(context, next) {
    if (!`${context.path}/`.startsWith(`${prefix}/`)) return next()
    const asked = new KoaContext(context, next, sluiceHandler)
    const reply = await throwingObjects(() => handler(handlerRequest(asked, prefix)))
    if (!reply) return next()
    context.status = reply.status
    for (const [name, value] of Object.entries(reply.headers ?? {})) context.set(name, value)
    const { body } = reply
    // For no body at all Koa would change the status to 204.
    context.body = typeof body === 'object' ? Buffer.from(body) : (body ?? '')
  }
}
