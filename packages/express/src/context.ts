import { METHODS } from 'node:http'
import {
  type AdapterContext,
  type Hold,
  type HttpRequest,
  ProxyWatch,
  type Reject,
  type RequestContent,
  type RequestDecision,
  type ResponseBody,
  routeScope,
  type Scope,
  settleAfter,
} from '@sluice/http/adapter'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import type { RateLimitHandler } from './options.ts'

const proxyWatch = new ProxyWatch({
  untrusted:
    `a request came with X-Forwarded-For, but 'trust proxy' is off, so the address of the connection is counted; behind ` +
    `one proxy call app.set('trust proxy', 1), and with none have the header removed`,
  oneAddress:
    `nearly all requests with X-Forwarded-For came from one address, though what they forward differs: 'trust proxy' may ` +
    `trust fewer proxies than there are, so that all clients share one limit; call app.set('trust proxy', <number of ` +
    `proxies>), as in app.set('trust proxy', 2). One very busy client looks the same: then all is well`,
})

/** What Sluice sees of an Express request. */
export class RequestView implements HttpRequest {
  readonly #native: Request
  readonly #isForAllMethods: boolean

  constructor(native: Request, isForAllMethods = false) {
    this.#native = native
    this.#isForAllMethods = isForAllMethods
  }

  get method(): string {
    return this.#native.method
  }

  /** Relative to where the limiter is mounted. */
  get path(): string {
    return this.#native.path
  }

  get route(): string | undefined {
    const route = routeOf(this.#native)
    return route && String(route.path)
  }

  get ip(): string | undefined {
    const { headers, app, ip } = this.#native
    const forwarded = headers['x-forwarded-for']
    if (forwarded !== undefined) proxyWatch.see(String(forwarded), ip, app.get('trust proxy'))
    return ip
  }

  get isForAllMethods(): boolean {
    return this.#isForAllMethods
  }

  get content(): RequestContent {
    const { originalUrl: url, body: parsed } = this.#native
    return { url, parsed, stream: this.#native }
  }

  header(name: string): string | undefined {
    return this.#native.get(name)
  }
}

interface ContextPlace {
  /** It may stand on a route. */
  readonly middleware: RequestHandler
  /** The property of the request that has the decision. */
  readonly property: string
}

/** A request of Express at one `rateLimit`. */
export class ExpressContext implements AdapterContext<Request, RateLimitHandler> {
  readonly native: Request
  readonly request: RequestView
  readonly response: Response
  readonly scope: Scope
  readonly #next: NextFunction
  readonly #property: string

  constructor(
    native: Request,
    response: Response,
    next: NextFunction,
    { middleware, property }: ContextPlace,
  ) {
    const place = placeOf(middleware, native)
    this.native = native
    this.request = new RequestView(native, place?.isForAll)
    this.response = response
    this.scope = place ? routeScope(place.isForAll ? undefined : native.method, place.path) : ''
    this.#next = next
    this.#property = property
  }

  settleAtEnd(hold: Hold): void {
    settleAfter(this.response, this.native.socket, hold)
  }

  showDecision(decision: RequestDecision): void {
    Reflect.set(this.native, this.#property, decision)
  }

  send(status: number, { contentType, text }: ResponseBody): void {
    // Not Express' `send`, which would add a charset: problem+json does not have one.
    this.response.status(status).setHeader('Content-Type', contentType)
    // Node finds out the length of what it sends: of the answer to a HEAD, nothing.
    this.response.setHeader('Content-Length', Buffer.byteLength(text)).end(text)
  }

  setStatus(status: number): void {
    this.response.status(status)
  }

  callHandler(handler: RateLimitHandler, refusal: Reject<RateLimitHandler>): unknown {
    this.response.status(refusal.status)
    return handler(this.native, this.response, this.#next, refusal.decision)
  }
}

/**
 * The route that a middleware is mounted on; `undefined` where it is mounted with `use`. Express leaves `req.route` behind
 * when a route hands on, and `req.baseUrl` is text that the client chose: neither says where the middleware stands.
 */
function placeOf(
  middleware: RequestHandler,
  request: Request,
): { readonly path: string; readonly isForAll: boolean } | undefined {
  const route = routeOf(request)
  if (!route) return undefined
  const layers = route.stack.filter(({ handle }) => handle === middleware)
  if (layers.length === 0) return undefined
  // `route.all` makes one layer without a method, `app.all` one for every method there is.
  const isForAll = layers.some(({ method }) => !method) || layers.length >= METHODS.length
  return { path: String(route.path), isForAll }
}

/** What Sluice reads of the route that Express has matched. */
interface MatchedRoute {
  readonly path: string | RegExp | readonly (string | RegExp)[]
  readonly stack: readonly { readonly handle: unknown; readonly method?: string }[]
}

function routeOf(request: Request): MatchedRoute | undefined {
  return request.route
}
