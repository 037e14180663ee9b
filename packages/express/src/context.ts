import { METHODS } from 'node:http'
import type { Refusal, RequestDecision, Scope } from '@sluice/http/adapter'
import { NodeRequestContext, ProxyWatch, routeScope } from '@sluice/http/adapter'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import type { RateLimitHandler } from './options.ts'

const proxyWatch = new ProxyWatch({
  trust: `'trust proxy'`,
  trustOne: `behind one proxy call app.set('trust proxy', 1)`,
  trustAll: `call app.set('trust proxy', <number of proxies>), as in app.set('trust proxy', 2)`,
})

interface MiddlewareCall {
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
    this.response = response
    this.scope = scopeOf(call.middleware, native)
    this.#call = call
  }

  /** Relative to where the limiter is mounted. */
  get path(): string {
    return this.native.path
  }

  get route(): string | undefined {
    const route: MatchedRoute | undefined = this.native.route
    return route && String(route.path)
  }

  get ip(): string | undefined {
    const { headers, app, ip } = this.native
    const forwarded = headers['x-forwarded-for']
    return forwarded === undefined ? ip : proxyWatch.see(forwarded, ip, app.get('trust proxy'))
  }

  protected override get url(): string {
    return this.native.originalUrl
  }

  /** Express takes both spellings for one header. */
  override header(name: string): string | undefined {
    return name === 'referer' || name === 'referrer' ? this.native.get(name) : super.header(name)
  }

  protected override show(decision: RequestDecision): void {
    Reflect.set(this.native, this.#call.property, decision)
  }

  callHandler(handler: RateLimitHandler, { status, decision }: Refusal): unknown {
    this.setStatus(status)
    return handler(this.native, this.response, this.#call.next, decision)
  }
}

/** The route that Express has matched, as far as Sluice reads it. */
interface MatchedRoute {
  readonly path: string | RegExp | readonly (string | RegExp)[]
  readonly stack: readonly { readonly handle: unknown; readonly method?: string }[]
}

/**
 * The place of a middleware: its route, or '' if it is mounted with `use`. Express leaves
 * `req.route` behind when a route hands on, and `req.baseUrl` is text that the client chose.
 */
function scopeOf(middleware: RequestHandler, { route, method }: Request): Scope {
  const matched: MatchedRoute | undefined = route
  const layers = matched?.stack.filter(({ handle }) => handle === middleware) ?? []
  if (!matched || layers.length === 0) return ''
  // `route.all` makes one layer without a method, `app.all` one for every method there is.
  const isForAll = layers.some((layer) => !layer.method) || layers.length >= METHODS.length
  return routeScope(isForAll ? undefined : method, String(matched.path))
}
