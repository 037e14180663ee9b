import { andThen, invalid, orDefault } from '@sluice/http'
import type { Handler, Limiting } from '@sluice/http/adapter'
import {
  continueWith,
  createGuard,
  handlerRequest,
  sendByNode,
  serve,
  withLimiter,
} from '@sluice/http/adapter'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { ExpressContext } from './context.ts'
import type { RateLimitHandler, RateLimitOptions } from './options.ts'

/** Middleware of Express, and the limiter behind it. */
export type RateLimit = RequestHandler & Limiting<[req: Request, res: Response]>

/**
 * Middleware that limits requests.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const adapterFields = ['requestPropertyName']
  const guard = createGuard<Request, RateLimitHandler>(options, { adapterFields })
  const property = propertyOf(options.requestPropertyName)

  const contextOf = (req: Request, res: Response, next: NextFunction = () => undefined) =>
    new ExpressContext(req, res, { middleware: sluiceRateLimit, next, property })

  function sluiceRateLimit(req: Request, res: Response, next: NextFunction): void {
    continueWith(next, () => serve(contextOf(req, res, next), guard.check))
  }

  return withLimiter(sluiceRateLimit, guard, contextOf)
}

/**
 * Middleware that serves a handler under a path.
 * @example
 * app.use('/limits', mount(handler))
 */
export function mount(handler: Handler<Request>): RequestHandler {
  return function sluiceHandler(req, res, next) {
    const call = { middleware: sluiceHandler, next, property: 'rateLimit' }
    const request = handlerRequest(new ExpressContext(req, res, call))
    continueWith(next, () =>
      andThen(handler(request), (reply) => {
        if (reply) sendByNode(res, reply)
        return reply === undefined
      }),
    )
  }
}

/** Properties of requests that applications need. */
const taken =
  /^(?:__proto__|constructor|app|body|cookies|headers|ip|method|next|params|path|query|res|route|session|socket|url|user)$/

function propertyOf(value: unknown): string {
  const name = orDefault(value, 'rateLimit')
  if (typeof name === 'string' && name !== '' && !taken.test(name)) return name
  const legal = `a name that requests of Express do not have, such as 'apiLimit'`
  throw invalid({ option: 'requestPropertyName' }, value, legal)
}
