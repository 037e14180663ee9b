import type { MaybePromise, Refusal, Scope } from '@sluice/http'
import { fieldsOn, hideOnRedirect, setFields } from '@sluice/http'
import { FetchContext } from './adapter/index.ts'
import type { RateLimitHandler } from './options.ts'

/** The place of a limiter. */
export interface Place<Info> {
  readonly addressOf?: ((request: Request, info: Info) => string | undefined) | undefined
  readonly route?: string
  readonly scope?: Scope
}

/** A request of fetch at one limiter. */
export class WebContext<Info extends object> extends FetchContext<Request, RateLimitHandler<Info>> {
  readonly route: string | undefined
  protected readonly info: Info
  protected headers: Headers = new Headers()

  constructor(request: Request, info: Info, { addressOf, route, scope = '' }: Place<Info> = {}) {
    super(request, request, addressOf && (() => addressOf(request, info)))
    this.route = route
    this.scope = scope
    this.info = info
  }

  protected reply(handler: RateLimitHandler<Info>, { decision }: Refusal): MaybePromise<Response> {
    return handler(this.native, this.info, decision)
  }

  /** Adds the fields to a copy: the response may be sent again, or its headers may be fixed. */
  finish(response: Response): Response {
    if (typeof response?.headers?.get !== 'function') {
      throw new TypeError(`a handler must return a Response, but it returned ${String(response)}`)
    }
    const { status, statusText } = response
    // An error of the network, and a change of protocols: there are no copies of them.
    if (status < 200) {
      this.end.finish(status === 0 ? undefined : status)
      return response
    }
    const ours = this.headers
    const headers = new Headers(response.headers)
    this.headers = headers
    setFields(this.response, fieldsOn(this.shown, this.response))
    for (const [name, value] of ours) {
      if (!headers.has(name)) headers.set(name, value)
      else if (name === 'vary') headers.append(name, value)
    }
    hideOnRedirect(this, status)
    return new Response(this.end.watch(response), { status, statusText, headers })
  }
}
