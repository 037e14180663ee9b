import type { Refusal, RequestDecision, Scope } from '@sluice/http/adapter'
import { NodeRequestContext, ProxyWatch } from '@sluice/http/adapter'
import type { NextFunction, Request, Response } from 'express'
import type { RateLimitHandler } from './options.ts'

const proxyWatch = new ProxyWatch({
  trust: `'trust proxy'`,
  trustOne: `behind one proxy call app.set('trust proxy', 1)`,
  trustAll: `call app.set('trust proxy', <number of proxies>), as in app.set('trust proxy', 2)`,
})

/** One call of a middleware of ours. */
interface MiddlewareCall {
  readonly scope: Scope
  readonly next: NextFunction
  /** The property of the request that has the decision. */
  readonly property: string
}

const noCall: MiddlewareCall = { scope: '', next: () => undefined, property: 'rateLimit' }

/** A request of Express at one middleware of ours, or at the guard of a framework over Express. */
export class ExpressContext extends NodeRequestContext<Request, RateLimitHandler> {
  readonly response: Response
  readonly scope: Scope
  readonly #call: MiddlewareCall

  constructor(native: Request, response: Response, call: MiddlewareCall = noCall) {
    super(native)
    this.response = response
    this.scope = call.scope
    this.#call = call
  }

  /** Relative to where the limiter is mounted. */
  get path(): string {
    return this.native.path
  }

  get route(): string | undefined {
    const { route } = this.native
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
