import type { Refusal, RequestDecision, Scope } from '@sluice/http/adapter'
import { NodeRequestContext, ProxyWatch } from '@sluice/http/adapter'
import type { NextFunction, Request, Response } from 'express'
import type { RateLimitHandler } from './options.ts'

const proxyWatch = new ProxyWatch({
  trust: `'trust proxy'`,
  trustOne: `behind one proxy, call app.set('trust proxy', 1)`,
  trustAll: `call app.set('trust proxy', <number of your proxies>), no more`,
})

/** One call of our middleware. */
interface MiddlewareCall {
  readonly scope?: Scope
  readonly next?: NextFunction | undefined
  /** The request property that holds the decision. */
  readonly property?: string
}

/** An Express request at one of our middlewares, or at the guard of a framework on Express. */
export class ExpressContext extends NodeRequestContext<Request, RateLimitHandler> {
  readonly response: Response
  readonly #call: MiddlewareCall

  constructor(native: Request, response: Response, call: MiddlewareCall = {}) {
    super(native, call.scope)
    this.response = response
    this.#call = call
  }

  /** Relative to where the limiter is mounted. */
  get path(): string {
    return this.native.path
  }

  get route(): string | undefined {
    return this.native.route && String(this.native.route.path)
  }

  get ip(): string | undefined {
    const { headers, app, ip } = this.native
    const forwarded = headers['x-forwarded-for']
    return forwarded === undefined ? ip : proxyWatch.see(forwarded, ip, app.get('trust proxy'))
  }

  protected override show(decision: RequestDecision): void {
    Reflect.set(this.native, this.#call.property ?? 'rateLimit', decision)
  }

  callHandler(handler: RateLimitHandler, { decision }: Refusal): unknown {
    return handler(this.native, this.response, this.#call.next ?? (() => undefined), decision)
  }
}
