import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Scope } from '../request/exchange.ts'
import {
  type HttpResponse,
  headerOf,
  type RequestContent,
  type ResponseBody,
} from '../request/exchange.ts'
import type { Hold, RequestDecision } from '../request/passage.ts'
import { type MountedRequest, sendByNode } from './mount.ts'
import { settleAfter } from './response-end.ts'
import type { AdapterContext, Refusal } from './serve.ts'

/** The property of a request that holds the decision of its last limiter. */
const shownKey: unique symbol = Symbol.for('@sluice/http/decision/1')

interface Carrier {
  [shownKey]?: RequestDecision
}

/** One request of any framework at one limiter. It is its own `HttpRequest`: one object less. */
export abstract class GuardedContext<Native extends object, Handler>
  implements AdapterContext<Native, Handler>, MountedRequest
{
  readonly native: Native
  scope: Scope
  #shown: RequestDecision | undefined

  constructor(native: Native, scope: Scope = '') {
    this.native = native
    this.scope = scope
  }

  abstract readonly response: HttpResponse
  abstract readonly method: string
  abstract readonly path: string
  abstract readonly route: string | undefined
  abstract readonly ip: string | undefined
  abstract readonly peer: string | undefined
  abstract readonly content: RequestContent | undefined
  abstract header(name: string): string | undefined
  abstract settleAtEnd(hold: Hold): void
  abstract send(status: number, body: ResponseBody): void
  abstract callHandler(handler: Handler, refusal: Refusal): unknown

  get request(): MountedRequest {
    return this
  }

  get shown(): RequestDecision | undefined {
    return this.#shown ?? this.carrier[shownKey]
  }

  showDecision(decision: RequestDecision): void {
    this.#shown = decision
    this.carrier[shownKey] = decision
    this.show(decision)
  }

  /** Shows the application the decision. */
  protected show(_decision: RequestDecision): void {
    // A fetch application receives it as an argument.
  }

  setStatus(_status: number): void {
    // An adapter that returns a response or throws an exception sets the status there.
  }

  /** The object shared by all limiters of a request. */
  protected get carrier(): Carrier & object {
    return this.native
  }
}

interface FrameworkRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly socket: Socket
  /** The decision that the application sees. */
  rateLimit?: RequestDecision | undefined
}

/** One request of a Node framework. An adapter adds the details of its framework. */
export abstract class FrameworkContext<
  Native extends FrameworkRequest,
  Handler,
> extends GuardedContext<Native, Handler> {
  abstract readonly raw: ServerResponse

  get method(): string {
    return this.native.method
  }

  get peer(): string | undefined {
    return this.native.socket.remoteAddress
  }

  header(name: string): string | undefined {
    return headerOf(this.native.headers, name)
  }

  protected override show(decision: RequestDecision): void {
    this.native.rateLimit = decision
  }

  settleAtEnd(hold: Hold): void {
    settleAfter(this.raw, this.native.socket, hold)
  }

  override setStatus(status: number): void {
    this.raw.statusCode = status
  }
}

/** One request of a framework that uses Node's own requests and responses. */
export abstract class NodeRequestContext<
  Native extends FrameworkRequest & IncomingMessage & { url: string; originalUrl?: string },
  Handler,
> extends FrameworkContext<Native, Handler> {
  abstract override readonly response: ServerResponse

  get raw(): ServerResponse {
    return this.response
  }

  get content(): RequestContent {
    const { native } = this
    const url = native.originalUrl ?? native.url
    return { url, parsed: Reflect.get(native, 'body'), stream: native }
  }

  /** Bypasses the framework, which may add a charset: problem+json has none. */
  send(status: number, { contentType, text }: ResponseBody): void {
    sendByNode(this.response, { status, headers: { 'Content-Type': contentType }, body: text })
  }
}
