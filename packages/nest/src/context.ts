import type { ExecutionContext } from '@nestjs/common'
import { andThen, type MaybePromise, plainProblem, problemMediaType } from '@sluice/http'
import type {
  Hold,
  HttpResponse,
  Refusal,
  RequestDecision,
  ResponseBody,
  Scope,
} from '@sluice/http/adapter'
import { GuardedContext } from '@sluice/http/adapter'
import type { RateLimitHandler } from './options.ts'
import type { PlatformContext } from './platform.ts'
import { RateLimitException } from './refusal.ts'

/** WebSocket messages and other non-HTTP calls have no fields. */
const noFields: HttpResponse = {
  headersSent: false,
  getHeaderNames: () => [],
  getHeader: () => undefined,
  setHeader: () => undefined,
  removeHeader: () => undefined,
}

/** A Nest call at the guard. The platform's adapter reads HTTP requests. */
export class NestContext extends GuardedContext<ExecutionContext, RateLimitHandler> {
  readonly path = '/'
  readonly ip = undefined
  readonly peer = undefined
  readonly content = undefined
  /** Without HTTP there is no address, so a key is required. */
  readonly needsAddress = true
  /** Held by a call without a known end: settled as soon as the call continues. */
  hold: Hold | undefined
  readonly #http: PlatformContext | undefined

  constructor(native: ExecutionContext, http: PlatformContext | undefined, scope: Scope) {
    super(native, scope)
    this.#http = http
  }

  override get request(): GuardedContext<object, never>['request'] {
    return this.#http ?? this
  }

  get response(): HttpResponse {
    return this.#http?.response ?? noFields
  }

  /** Node's response to an HTTP request. */
  get raw(): PlatformContext['raw'] | undefined {
    return this.#http?.raw
  }

  get method(): string {
    return this.native.getType().toUpperCase()
  }

  get route(): string {
    return `${this.native.getClass().name}.${this.native.getHandler().name}`
  }

  header(): undefined {
    return undefined
  }

  protected override get carrier(): object {
    return this.#http?.native ?? this.native
  }

  protected override show(decision: RequestDecision): void {
    if (this.#http) this.#http.native.rateLimit = decision
  }

  settleAtEnd(hold: Hold): void {
    if (this.#http) this.#http.settleAtEnd(hold)
    else this.hold = hold
  }

  send(status: number, body: ResponseBody): never {
    throw new RateLimitException(status, body, this.shown)
  }

  callHandler(handler: RateLimitHandler, { status, decision }: Refusal): MaybePromise<never> {
    const plain = { contentType: problemMediaType, text: JSON.stringify(plainProblem(status)) }
    return andThen(handler(this.native, decision), (made) => {
      throw made ?? new RateLimitException(status, plain, decision)
    })
  }
}
