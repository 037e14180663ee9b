import { METHODS } from 'node:http'
import { processWide } from '@sluice/http'
import {
  NodeRequestContext,
  ProxyWatch,
  type Refusal,
  type RequestDecision,
  routeScope,
  type Scope,
} from '@sluice/http/adapter'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import type { RateLimitHandler } from './options.ts'

const proxyWatch = new ProxyWatch({
  trust: `'trust proxy'`,
  trustOne: `behind one proxy call app.set('trust proxy', 1)`,
  count: `'trust proxy'`,
  trustAll: `call app.set('trust proxy', <number of proxies>), as in app.set('trust proxy', 2)`,
})

/** The properties of requests under which the limiters of this process show decisions. */
export const decisionProperties: Set<string> = processWide(
  '@sluice/express/decision-properties/1',
  () => new Set(['rateLimit']),
)

interface MiddlewareCall {
  /** It may stand on a route. */
  readonly middleware: RequestHandler
  readonly next: NextFunction
  /** The property of the request that has the decision. */
  readonly property: string
}

/** A request of Express at one middleware of ours. */
export class ExpressContext extends NodeRequestContext<Request, RateLimitHandler> {
  readonly response: Response
  readonly scope: Scope
  readonly #call: MiddlewareCall

  constructor(native: Request, response: Response, call: MiddlewareCall) {
    super(native)
    const route = routeOfMiddleware(call.middleware, native)
    this.response = response
    this.scope = route ? routeScope(route.isForAll ? undefined : native.method, route.path) : ''
    this.#call = call
  }

  /** Relative to where the limiter is mounted. */
  get path(): string {
    return this.native.path
  }

  get route(): string | undefined {
    const route = routeOf(this.native)
    return route && String(route.path)
  }

  get ip(): string | undefined {
    const { headers, app, ip } = this.native
    const forwarded = headers['x-forwarded-for']
    if (forwarded === undefined) return ip
    const trust: unknown = app.get('trust proxy')
    proxyWatch.see(String(forwarded), ip, trust)
    if (trust === true) proxyWatch.seeTrustInAll(String(forwarded))
    return ip
  }

  protected override get url(): string {
    return this.native.originalUrl
  }

  /** Express takes both spellings for one header. */
  override header(name: string): string | undefined {
    return name === 'referer' || name === 'referrer' ? this.native.get(name) : super.header(name)
  }

  protected override get shownBefore(): RequestDecision | undefined {
    for (const property of decisionProperties) {
      const decision: RequestDecision | undefined = Reflect.get(this.native, property)
      if (decision) return decision
    }
    return undefined
  }

  protected override show(decision: RequestDecision): void {
    Reflect.set(this.native, this.#call.property, decision)
  }

  callHandler(handler: RateLimitHandler, { status, decision }: Refusal): unknown {
    this.setStatus(status)
    return handler(this.native, this.response, this.#call.next, decision)
  }
}

/**
 * The route that a middleware is mounted on; `undefined` where it is mounted with `use`. Express
 * leaves `req.route` behind when a route hands on, and `req.baseUrl` is text that the client chose:
 * neither says where the middleware stands.
 */
function routeOfMiddleware(
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

/** The route that Express has matched, as far as Sluice reads it. */
interface MatchedRoute {
  readonly path: string | RegExp | readonly (string | RegExp)[]
  readonly stack: readonly { readonly handle: unknown; readonly method?: string }[]
}

function routeOf(request: Request): MatchedRoute | undefined {
  return request.route
}
