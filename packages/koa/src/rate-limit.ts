import { fieldsOn, type Limiter, type Peeked, setFields } from '@sluice/http'
import {
  beforeHead,
  createGuard,
  type Handler,
  handlerRequest,
  hideOnRedirect,
  laxRouting,
  serve,
  throwingObjects,
} from '@sluice/http/adapter'
import type { Context, Middleware, Next } from 'koa'
import { KoaContext } from './context.ts'
import type { RateLimitHandler, RateLimitOptions } from './options.ts'

/** Middleware of Koa, and the limiter behind it. */
export interface RateLimit {
  (context: Context, next: Next): Promise<void>
  /**
   * The limiter: to refund `ctx.rateLimit`, or to peek at a key or reset it. A policy on a route
   * has keys of its own there unless it has a name.
   */
  readonly limiter: Limiter
  /** Answers what a request would get, by its own key, limit and cost. Takes nothing. */
  peek(context: Context): Promise<Peeked>
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

  const peek = async (context: Context) =>
    guard.peek(new KoaContext(context, async () => undefined, sluiceRateLimit))
  return Object.assign(sluiceRateLimit, { limiter: guard.limiter, peek })
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
