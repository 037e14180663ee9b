import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { andThen, invalid, isOptions, type Limiter, orDefault, type Peeked } from '@sluice/http'
import {
  beforeHead,
  continueWith,
  createGuard,
  type Handler,
  handlerRequest,
  hideOnRedirect,
  laxRouting,
  sendByNode,
  serve,
} from '@sluice/http/adapter'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { decisionProperties, ExpressContext } from './context.ts'
import type { RateLimitHandler, RateLimitOptions } from './options.ts'

/** Middleware of Express, and the limiter behind it. */
export interface RateLimit extends RequestHandler {
  /**
   * The limiter: to refund `req.rateLimit`, or to peek at a key or reset it. A policy on a route
   * has keys of its own there unless it has a name.
   */
  readonly limiter: Limiter
  /** Answers what a request would get, by its own key, limit and cost. Takes nothing. */
  peek(req: Request, res: Response): Promise<Peeked>
}

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

  async function peek(req: Request, res: Response): Promise<Peeked> {
    const call = { middleware: sluiceRateLimit, next: () => undefined, property }
    return guard.peek(new ExpressContext(req, res, call))
  }

  return Object.assign(sluiceRateLimit, { limiter: guard.limiter, peek })
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

/** A request without a client, and the properties that Express adds: they must stay as they are. */
const bareRequest = new IncomingMessage(new Socket())
const ofExpress =
  'accepts app baseUrl body cookies fresh get header host hostname ip ips is next originalUrl param params path protocol query range res route secure signedCookies stale subdomains xhr'

function propertyOf(value: unknown): string {
  const name = orDefault(value, 'rateLimit')
  const isFree = (text: string) => !(text in bareRequest) && !ofExpress.split(' ').includes(text)
  if (typeof name === 'string' && name !== '' && isFree(name)) return name
  const legal = `a name that requests of Express do not have, such as 'apiLimit'`
  throw invalid({ option: 'requestPropertyName' }, value, legal)
}
