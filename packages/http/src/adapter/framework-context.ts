import type { IncomingHttpHeaders } from 'node:http'
import type { Hold } from '../request/hold.ts'
import type { Reject, RequestDecision } from '../request/passage.ts'
import type { HttpRequest, RequestContent } from '../request/request.ts'
import { type HttpResponse, headerOf, type ResponseBody } from '../request/response.ts'
import type { Scope } from '../request/scope.ts'
import type { AdapterContext } from './serve.ts'

/**
 * One request of any framework at one limiter. It is its own `HttpRequest`, which spares an object.
 */
export abstract class GuardedContext<Native extends object, Handler>
  implements AdapterContext<Native, Handler>, HttpRequest
{
  readonly native: Native
  #shown: RequestDecision | undefined

  constructor(native: Native) {
    this.native = native
  }

  abstract readonly response: HttpResponse
  abstract readonly scope: Scope
  abstract readonly method: string
  abstract readonly path: string
  abstract readonly route: string | undefined
  abstract readonly ip: string | undefined
  abstract readonly content: RequestContent | undefined
  abstract header(name: string): string | undefined
  abstract settleAtEnd(hold: Hold): void
  abstract send(status: number, body: ResponseBody): void
  abstract setStatus(status: number): void
  abstract callHandler(handler: Handler, refusal: Reject<Handler>): unknown
  /** The decision of a limiter before this one. */
  protected abstract get shownBefore(): RequestDecision | undefined
  /** Puts the decision where the application and later limiters find it. */
  protected abstract show(decision: RequestDecision): void

  get request(): HttpRequest {
    return this
  }

  get shown(): RequestDecision | undefined {
    return this.#shown ?? this.shownBefore
  }

  showDecision(decision: RequestDecision): void {
    this.#shown = decision
    this.show(decision)
  }
}

/** The part that the requests of Node's frameworks share. */
interface FrameworkRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  /** The decision that the application sees. */
  rateLimit?: RequestDecision | undefined
}

/** One request of a framework of Node. An adapter extends it by the details of its framework. */
export abstract class FrameworkContext<
  Native extends FrameworkRequest,
  Handler,
> extends GuardedContext<Native, Handler> {
  get method(): string {
    return this.native.method
  }

  header(name: string): string | undefined {
    return headerOf(this.native.headers, name)
  }

  protected get shownBefore(): RequestDecision | undefined {
    return this.native.rateLimit
  }

  protected show(decision: RequestDecision): void {
    this.native.rateLimit = decision
  }
}
