import { METHODS } from 'node:http'
import {
  type HttpRequest,
  type RequestContent,
  routeScope,
  type Scope,
  warnOnce,
} from '@sluice/http'
import type { Request, RequestHandler } from 'express'

/** What Sluice sees of an Express request. */
export class RequestView implements HttpRequest {
  readonly #native: Request

  constructor(native: Request) {
    this.#native = native
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
    warnAboutProxy(this.#native)
    return this.#native.ip
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
  const route = routeOf(request)
  const layers = route?.stack.filter(({ handle }) => handle === middleware) ?? []
  if (!route || layers.length === 0) return ''
  // `route.all` makes one layer without a method, `app.all` one for every method there is.
  const isForAll = layers.some(({ method }) => !method) || layers.length >= METHODS.length
  return routeScope(isForAll ? undefined : request.method, String(route.path))
}

/** What Sluice reads of the route that Express has matched. */
interface MatchedRoute {
  readonly path: string | RegExp | readonly (string | RegExp)[]
  readonly stack: readonly { readonly handle: unknown; readonly method?: string }[]
}

function routeOf(request: Request): MatchedRoute | undefined {
  return request.route
}

/** Behind a proxy all clients would share its address; without one, anybody could send the header. Only the user knows. */
function warnAboutProxy(request: Request): void {
  if (request.headers['x-forwarded-for'] === undefined || request.app.get('trust proxy')) return
  warnOnce(
    `a request came with X-Forwarded-For, but 'trust proxy' is off, so the address of the connection is counted; behind ` +
      `one proxy call app.set('trust proxy', 1), and with none have the header removed`,
  )
}
