import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { andThen, invalid, isOptions, orDefault } from '@sluice/http'
import {
  beforeHead,
  continueWith,
  createGuard,
  type Handler,
  handlerRequest,
  hideOnRedirect,
  type Limiting,
  laxRouting,
  sendByNode,
  serve,
  withLimiter,
} from '@sluice/http/adapter'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { decisionProperties, ExpressContext } from './context.ts'
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
  if (!isOptions(options)) {
    throw invalid({ option: 'rateLimit' }, options, 'a plain object of options')
  }
  const { requestPropertyName, ...limits } = options
  const property = propertyOf(requestPropertyName)
  decisionProperties.add(property)
  const adapterFields = ['requestPropertyName']
  const place = { where: 'rateLimit', routing: laxRouting, adapterFields }
  const guard = createGuard<Request, RateLimitHandler>(limits, place)

  function sluiceRateLimit(req: Request, res: Response, next: NextFunction): void {
    const context = new ExpressContext(req, res, { middleware: sluiceRateLimit, next, property })
    if (guard.hidesOnRedirect) beforeHead(res, (status) => hideOnRedirect(context, status))
    continueWith(next, () => serve(context, guard.check))
  }

  const call = { middleware: sluiceRateLimit, next: () => undefined, property }
  return withLimiter(sluiceRateLimit, guard, (req: Request, res: Response) => {
    return new ExpressContext(req, res, call)
  })
}

/**
 * Middleware that serves a handler under a path.
 * @example
 * app.use('/limits', mount(handler))
 */
export function mount(handler: Handler<Request>): RequestHandler {
  return function sluiceHandler(req, res, next) {
    const call = { middleware: sluiceHandler, next, property: 'rateLimit' }
    continueWith(next, () =>
      andThen(handler(handlerRequest(new ExpressContext(req, res, call))), (reply) => {
        if (reply) sendByNode(res, reply)
        return reply === undefined
      }),
    )
  }
}

/** The properties that Express adds to requests: they must stay as they are. */
const ofExpress =
  'accepts app baseUrl body cookies fresh get header host hostname ip ips is next originalUrl param params path protocol query range res route secure signedCookies stale subdomains xhr'

function propertyOf(value: unknown): string {
  const name = orDefault(value, 'rateLimit')
  if (name === 'rateLimit') return name
  const isFree = (text: string) =>
    !(text in new IncomingMessage(new Socket())) && !ofExpress.split(' ').includes(text)
  if (typeof name === 'string' && name !== '' && isFree(name)) return name
  const legal = `a name that requests of Express do not have, such as 'apiLimit'`
  throw invalid({ option: 'requestPropertyName' }, value, legal)
}
