import type { Refusal, RequestContent, ResponseBody, Scope } from '@sluice/http/adapter'
import { FrameworkContext, ProxyWatch, routeScope } from '@sluice/http/adapter'
import type { Context, Middleware, Next } from 'koa'
import type { RateLimitHandler } from './options.ts'

const proxyWatch = new ProxyWatch({
  trust: 'app.proxy',
  trustOne: 'behind one proxy, set app.proxy = true and app.maxIpsCount = 1',
  count: 'app.maxIpsCount',
  trustAll: 'set app.maxIpsCount to the number of your proxies',
})

/** A Koa request at one of our middlewares. */
export class KoaContext extends FrameworkContext<Context, RateLimitHandler> {
  readonly response: Context['res']
  readonly #next: Next

  constructor(native: Context, next: Next, middleware: Middleware) {
    super(native, scopeOf(middleware, native))
    this.response = native.res
    this.#next = next
  }

  get raw(): Context['res'] {
    return this.response
  }

  get path(): string {
    return this.native.path
  }

  get route(): string | undefined {
    const { _matchedRoute: route } = this.native
    return route && String(route)
  }

  get ip(): string | undefined {
    const { app, ip } = this.native
    // Without a number, Koa trusts every address.
    const trust = app.proxy && (app.maxIpsCount || true)
    return proxyWatch.see(this.header('x-forwarded-for'), ip, trust)
  }

  get content(): RequestContent {
    const { originalUrl: url, req: stream, request } = this.native
    return { url, parsed: Reflect.get(request, 'body'), stream }
  }

  send(_status: number, { contentType, text }: ResponseBody): void {
    // Not `type`, which would add a charset: problem+json has none.
    this.native.set('Content-Type', contentType)
    this.native.body = text
  }

  override setStatus(status: number): void {
    this.native.status = status
  }

  callHandler(handler: RateLimitHandler, { decision }: Refusal): unknown {
    return handler(this.native, this.#next, decision)
  }
}

/** A layer that @koa/router matched, as far as Sluice reads it. */
interface RouterLayer {
  readonly path: string | RegExp
  readonly methods: readonly string[]
  readonly stack: readonly unknown[]
}

/** Returns the place of a middleware: its route, or '' with `app.use` or `router.use`. */
function scopeOf(middleware: Middleware, { matched, method }: Context): Scope {
  const layers: readonly RouterLayer[] = Array.isArray(matched) ? matched : []
  const layer = layers.find(({ stack }) => stack.includes(middleware))
  if (!layer || layer.methods.length === 0) return ''
  // A layer for GET also handles HEAD.
  const isForAll = layer.methods.filter((each) => each !== 'HEAD').length > 1
  return routeScope(isForAll ? undefined : method, String(layer.path))
}
