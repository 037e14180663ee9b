import type { ExecutionContext } from '@nestjs/common'
import { andThen, type MaybePromise, plainProblem, problemMediaType } from '@sluice/http'
import type {
  Hold,
  HttpResponse,
  Refusal,
  RequestContent,
  RequestDecision,
  ResponseBody,
  Scope,
} from '@sluice/http/adapter'
import { GuardedContext, headerOf, ProxyWatch, settleAfter } from '@sluice/http/adapter'
import type { RateLimitHandler } from './options.ts'
import type { Platform } from './platform.ts'
import { RateLimitException } from './refusal.ts'

const proxyWatch = new ProxyWatch({
  trust: `'trust proxy'`,
  trustOne: `behind one proxy call app.set('trust proxy', 1), or write new FastifyAdapter({ trustProxy: '<address of the proxy>' })`,
  trustAll: 'trust all proxies of yours, by their number or their addresses',
})

/** A message of a WebSocket, or a call that is not of HTTP, has no fields. */
const noFields: HttpResponse = {
  headersSent: false,
  getHeaderNames: () => [],
  getHeader: () => undefined,
  setHeader: () => undefined,
  removeHeader: () => undefined,
}

/** A request of Nest at the guard. */
export class NestContext extends GuardedContext<ExecutionContext, RateLimitHandler> {
  readonly scope: Scope
  readonly peer = undefined
  readonly #platform: Platform | undefined
  #hold: Hold | undefined

  constructor(native: ExecutionContext, platform: Platform | undefined, scope: Scope) {
    super(native)
    this.scope = scope
    this.#platform = platform
  }

  get response(): HttpResponse {
    return this.#platform?.fields ?? noFields
  }

  /** Without HTTP there is no address, so there has to be a key. */
  get needsAddress(): boolean {
    return this.#platform === undefined
  }

  get method(): string {
    return this.#platform?.request.method ?? this.native.getType().toUpperCase()
  }

  get path(): string {
    return this.#platform?.request.url.split('?', 1)[0] ?? '/'
  }

  get route(): string | undefined {
    if (this.#platform) return this.#platform.route
    return `${this.native.getClass().name}.${this.native.getHandler().name}`
  }

  get ip(): string | undefined {
    const forwarded = this.header('x-forwarded-for')
    const address = this.#platform?.request.ip
    if (forwarded === undefined) return address
    return proxyWatch.see(forwarded, address, this.#platform?.trust)
  }

  get content(): RequestContent | undefined {
    if (!this.#platform) return undefined
    const { request, raw } = this.#platform
    return { url: request.originalUrl, parsed: request.body, stream: raw.request }
  }

  header(name: string): string | undefined {
    return this.#platform && headerOf(this.#platform.request.headers, name)
  }

  protected override get carrier(): object {
    return this.#platform?.request ?? this.native
  }

  protected override show(decision: RequestDecision): void {
    if (this.#platform) this.#platform.request.rateLimit = decision
  }

  settleAtEnd(hold: Hold): void {
    if (!this.#platform) this.#hold = hold
    else settleAfter(this.#platform.raw.response, this.#platform.raw.request.socket, hold)
  }

  /** Nobody tells when a message is done, so it is as soon as it goes on. */
  goOn(): void {
    this.#hold?.finish(200)
  }

  send(status: number, body: ResponseBody): never {
    throw new RateLimitException(status, body, this.shown)
  }

  setStatus(): void {
    // The exception that is thrown carries its status.
  }

  callHandler(handler: RateLimitHandler, { status, decision }: Refusal): MaybePromise<never> {
    const plain = { contentType: problemMediaType, text: JSON.stringify(plainProblem(status)) }
    return andThen(handler(this.native, decision), (made) => {
      throw made ?? new RateLimitException(status, plain, decision)
    })
  }
}
