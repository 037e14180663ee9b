import type { Handler, Limiting, Scope } from '@sluice/http/adapter'
import {
  continueWith,
  createGuard,
  invalid,
  mountedReply,
  nodeHttp,
  routeScope,
  sendByNode,
  serve,
  withLimiter,
} from '@sluice/http/adapter'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { ExpressContext } from './context.ts'
import type { RateLimitOptions } from './options.ts'

/** Express middleware, with its limiter. */
export type RateLimit = RequestHandler & Limiting<[req: Request, res: Response]>

/**
 * Middleware that limits requests.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const guard = createGuard(options, { adapterFields: ['requestPropertyName'] })
  const property = propertyOf(options.requestPropertyName)

  const contextOf = (req: Request, res: Response, next?: NextFunction) =>
    new ExpressContext(req, res, { scope: scopeOf(sluiceRateLimit, req), next, property })

  function sluiceRateLimit(req: Request, res: Response, next: NextFunction): void {
    continueWith(next, () => serve(contextOf(req, res, next), guard))
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
    continueWith(next, () =>
      mountedReply(handler, new ExpressContext(req, res)).then((reply) => {
        if (reply) sendByNode(res, reply)
        return reply === undefined
      }),
    )
  }
}

/** The route that Express matched, as far as Sluice reads it. */
interface Matching {
  readonly method: string
  readonly route?: {
    readonly path: string | RegExp | readonly (string | RegExp)[]
    readonly stack: readonly { readonly handle: unknown; readonly method?: string }[]
  }
}

/**
 * Returns the place of a middleware: its route, or '' if it is mounted with `use`. Express keeps
 * `req.route` after a route calls `next`, and `req.baseUrl` is text that the client chose.
 */
function scopeOf(middleware: RequestHandler, { route, method }: Matching): Scope {
  const layers = route?.stack.filter(({ handle }) => handle === middleware) ?? []
  if (!route || layers.length === 0) return ''
  // `route.all` creates one layer without a method, `app.all` one layer per method.
  const isForAll =
    layers.some((layer) => !layer.method) || layers.length >= nodeHttp().METHODS.length
  return routeScope(isForAll ? undefined : method, String(route.path))
}

/** Properties that Express adds to requests, which must not be overwritten. */
const ofExpress =
  'accepts app baseUrl body cookies fresh get header host hostname ip ips is next originalUrl param params path protocol query range res route secure signedCookies stale subdomains xhr'

function propertyOf(name: unknown = 'rateLimit'): string {
  const isTaken = (text: string) =>
    text in Reflect.construct(nodeHttp().IncomingMessage, []) || ofExpress.split(' ').includes(text)
  if (typeof name === 'string' && name !== '' && !isTaken(name)) return name
  const legal = `a name that Express requests do not have, such as 'apiLimit'`
  throw invalid({ option: 'requestPropertyName' }, name, legal)
}
