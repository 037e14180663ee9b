import type { Limiter } from '@sluice/http'
import {
  admit,
  beforeHead,
  createGuard,
  hideOnRedirect,
  throwingObjects,
} from '@sluice/http/adapter'
import type { Context, Next } from 'koa'
import { KoaContext } from './context.ts'
import type { RateLimitHandler, RateLimitOptions } from './options.ts'

/**
 * Routers of Koa have settings of their own for case and slashes, so rules match as the laxest
 * router would.
 */
const routing = {
  caseSensitive: false,
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: false,
  lenient: true,
}

export interface RateLimit {
  (context: Context, next: Next): Promise<void>
  /**
   * The limiter: to refund `ctx.rateLimit`, or to peek at a key or reset it. A policy on a route
   * has keys of its own there unless it has a name.
   */
  readonly limiter: Limiter
}

/**
 * Middleware that limits requests.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const guard = createGuard<Context, RateLimitHandler>(options, { where: 'rateLimit', routing })

  async function sluiceRateLimit(context: Context, next: Next): Promise<void> {
    const { res } = context
    if (guard.hidesOnRedirect) beforeHead(res, (status) => hideOnRedirect(context, res, status))
    const asked = new KoaContext(context, next, sluiceRateLimit)
    if (await throwingObjects(() => admit(asked, guard.check))) await next()
  }

  return Object.assign(sluiceRateLimit, { limiter: guard.limiter })
}
