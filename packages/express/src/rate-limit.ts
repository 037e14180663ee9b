import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import {
  type Answer,
  andThen,
  continueWith,
  createGuard,
  type Exchange,
  fieldsOnHead,
  type GuardOptions,
  given,
  invalid,
  isOptions,
  type Limiter,
  type MaybePromise,
  RateLimitError,
  type Reject,
  type RequestDecision,
  setFields,
  settleAfter,
} from '@sluice/http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { RequestView, scopeOf } from './request-view.ts'

declare global {
  // biome-ignore lint/style/noNamespace: how Express has its types extended
  namespace Express {
    interface Request {
      /** What the last `rateLimit` of this request decided; `undefined` when it was skipped. */
      rateLimit?: RequestDecision | undefined
    }
  }
}

/** Replies to a refused request; status and headers are set already. */
export type RateLimitHandler = (
  request: Request,
  response: Response,
  next: NextFunction,
  decision: RequestDecision,
) => unknown

export type RateLimitOptions = GuardOptions<Request, RateLimitHandler> & {
  /** The property of the request that has the decision: of several limiters on a request each may have its own. @default 'rateLimit' */
  requestPropertyName?: string
}

/**
 * Every router of Express has settings of its own for case and slashes, which no middleware can see. So rules match as the laxest router
 * would: one too many is a limit on a request that finds nothing, one too few is a way around a limit.
 */
const routing = {
  caseSensitive: false,
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: true,
  lenient: true,
}

export interface RateLimit extends RequestHandler {
  /**
   * What counts: to refund `req.rateLimit`, or to peek at a key or reset it. A policy on a route has keys of its own there
   * unless it has a name.
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
  if (!isOptions(options)) {
    throw invalid({ option: 'rateLimit' }, options, 'a plain object of options')
  }
  const { requestPropertyName, ...limits } = options
  const property = propertyOf(requestPropertyName)
  const adapterFields = ['requestPropertyName']
  const place = { where: 'rateLimit', routing, adapterFields }
  const guard = createGuard<Request, RateLimitHandler>(limits, place)

  /** Whether the request goes on; if not, it was replied to. */
  function admit(req: Request, res: Response, next: NextFunction): MaybePromise<boolean> {
    const exchange: Exchange<Request> = {
      native: req,
      request: new RequestView(req, sluiceRateLimit),
      response: res,
      scope: scopeOf(sluiceRateLimit, req),
      whenOver: (hold) => settleAfter(res, req.socket, hold),
    }
    return andThen(guard.check(exchange), ({ decision, verdict, hold }) => {
      if (hold) exchange.whenOver(hold)
      if (decision) Reflect.set(req, property, decision)
      setFields(res, verdict.fields)
      if (guard.hidesOnRedirect) onHead(res, (status) => setFields(res, fieldsOnHead(req, status)))
      if (verdict.action === 'pass') return true
      if (verdict.action === 'delay') return verdict.turn
      if (res.headersSent) return false
      if (verdict.action === 'answer') return send(verdict, res)
      return andThen(refuse(verdict, { req, res, next }), () => false)
    })
  }

  function sluiceRateLimit(req: Request, res: Response, next: NextFunction): void {
    continueWith(next, () => admit(req, res, next))
  }

  return Object.assign(sluiceRateLimit, { limiter: guard.limiter })
}

/** A request without a client, and what Express adds: properties that must stay as they are. */
const bareRequest = new IncomingMessage(new Socket())
const ofExpress =
  'accepts app baseUrl body cookies fresh get header host hostname ip ips is next originalUrl param params path protocol query range res route secure signedCookies stale subdomains xhr'

function propertyOf(value: unknown): string {
  const name = given(value, 'rateLimit')
  const isFree = (text: string) => !(text in bareRequest) && !ofExpress.split(' ').includes(text)
  if (typeof name === 'string' && name !== '' && isFree(name)) return name
  const legal = `a name that requests of Express do not have, such as 'apiLimit'`
  throw invalid({ option: 'requestPropertyName' }, value, legal)
}

/** Replies with the body of a refusal, or leaves that to a handler of the user's. */
function refuse(
  reject: Reject<RateLimitHandler>,
  { req, res, next }: { req: Request; res: Response; next: NextFunction },
): unknown {
  const { status, body, handler, decision } = reject
  if (body) return send({ status, body }, res)
  res.status(status)
  if (handler === 'throw') throw new RateLimitError(reject)
  return handler?.(req, res, next, decision)
}

/** @returns that the request goes no further */
function send({ status, body }: Pick<Answer, 'status' | 'body'>, res: Response): false {
  // Not Express' `send`, which would add a charset: problem+json does not have one.
  res.status(status).setHeader('Content-Type', body.contentType)
  // Node finds out the length of what it sends: of the answer to a HEAD, nothing.
  res.setHeader('Content-Length', Buffer.byteLength(body.text)).end(body.text)
  return false
}

/** Calls `change` just before the head is written, when its fields can be changed for the last time. */
function onHead(response: Response, change: (status: number) => void): void {
  const { writeHead } = response
  response.writeHead = (...args: unknown[]) => {
    response.writeHead = writeHead
    change(Number(args[0]))
    return Reflect.apply(writeHead, response, args)
  }
}
