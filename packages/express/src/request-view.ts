import { METHODS } from 'node:http'
import {
  type HttpRequest,
  ProxyWatch,
  type RequestContent,
  routeScope,
  type Scope,
} from '@sluice/http'
import type { Request, RequestHandler } from 'express'

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
  readonly #middleware: RequestHandler | undefined

  /** @param middleware the one that asks: it may stand on a route */
  constructor(native: Request, middleware?: RequestHandler) {
    this.#native = native
    this.#middleware = middleware
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
    return placeOf(this.#middleware, this.#native)?.isForAll === true
  }

  get content(): RequestContent {
    return {
      url: this.#native.originalUrl,
      parsed: this.#native.body,
      stream: this.#native,
    }
  }

  header(name: string): string | undefined {
    return this.#native.get(name)
  }
}

/**
 * The route that a middleware is mounted on, '' where it is mounted with `use`. Express leaves `req.route` behind when a
 * route hands on, and `req.baseUrl` is text that the client chose: neither says where we stand.
 */
export function scopeOf(middleware: RequestHandler, request: Request): Scope {
  const place = placeOf(middleware, request)
  return place ? routeScope(place.isForAll ? undefined : request.method, place.path) : ''
}

/** The route that a middleware is mounted on; `undefined` where it is mounted with `use`. */
function placeOf(
  middleware: RequestHandler | undefined,
  request: Request,
): { readonly path: string; readonly isForAll: boolean } | undefined {
  const route = routeOf(request)
  const layers = route?.stack.filter(({ handle }) => handle === middleware) ?? []
  if (!route || layers.length === 0) return undefined
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
