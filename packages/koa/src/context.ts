import { warnOnce } from '@sluice/http'
import {
  FrameworkContext,
  type Hold,
  ProxyWatch,
  type Refusal,
  type RequestContent,
  type ResponseBody,
  routeScope,
  type Scope,
  settleAfter,
} from '@sluice/http/adapter'
import type { Context, Middleware, Next } from 'koa'
import type { RateLimitHandler } from './options.ts'

const proxyWatch = new ProxyWatch({
  trust: 'app.proxy',
  trustOne: 'behind one proxy set app.proxy = true and app.maxIpsCount = 1',
  count: 'app.maxIpsCount',
  trustAll: 'set it to the number of your proxies',
})

const leftmost =
  `app.proxy is on without app.maxIpsCount, so the first address of X-Forwarded-For is counted, which any client can make ` +
  `up; set app.maxIpsCount to the number of your proxies`

/** A request of Koa at one middleware of ours. */
export class KoaContext extends FrameworkContext<Context, RateLimitHandler> {
  readonly response: Context['res']
  readonly scope: Scope
  readonly #next: Next

  constructor(native: Context, next: Next, middleware: Middleware) {
    super(native)
    const layer = layersOf(native).find(({ stack }) => stack.includes(middleware))
    this.response = native.res
    this.scope = layer ? scopeOf(layer, native.method) : ''
    this.#next = next
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
    const forwarded = this.header('x-forwarded-for')
    if (forwarded === undefined) return ip
    proxyWatch.see(forwarded, ip, app.proxy)
    if (app.proxy && !app.maxIpsCount) warnOnce(leftmost)
    return ip
  }

  get content(): RequestContent {
    const { originalUrl: url, req: stream, request } = this.native
    return { url, parsed: Reflect.get(request, 'body'), stream }
  }

  settleAtEnd(hold: Hold): void {
    settleAfter(this.native.res, this.native.req.socket, hold)
  }

  send(status: number, { contentType, text }: ResponseBody): void {
    this.native.status = status
    // Not `type`, which would add a charset: problem+json does not have one.
    this.native.set('Content-Type', contentType)
    this.native.body = text
  }

  setStatus(status: number): void {
    this.native.status = status
  }

  callHandler(handler: RateLimitHandler, { status, decision }: Refusal): unknown {
    this.native.status = status
    return handler(this.native, this.#next, decision)
  }
}

/** A layer that @koa/router has matched, as far as Sluice reads it. */
interface RouterLayer {
  readonly path: string | RegExp
  readonly methods: readonly string[]
  readonly stack: readonly unknown[]
}

function layersOf({ matched }: Context): readonly RouterLayer[] {
  return Array.isArray(matched) ? matched : []
}

/** A middleware of `router.use` has no route, so it stands where the whole application stands. */
function scopeOf(layer: RouterLayer, method: string): Scope {
  if (layer.methods.length === 0) return ''
  return routeScope(isForAll(layer) ? undefined : method, String(layer.path))
}

/** A layer for GET is one for HEAD too. */
function isForAll({ methods }: RouterLayer): boolean {
  return methods.filter((method) => method !== 'HEAD').length > 1
}
