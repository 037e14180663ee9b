import type {
  Guard,
  Handler,
  Hold,
  HttpResponse,
  Refusal,
  RequestContent,
  ResponseBody,
} from '@sluice/http'
import { GuardedContext, hideOnRedirect, mountedReply, serve, throwingObjects } from '@sluice/http'
import { type FetchInfo, type FetchOptions, type FetchReply, proxyWatch } from './options.ts'
import { watchedBody } from './watched-body.ts'

/** The place of a limiter. */
type FetchPlace<Asked extends readonly unknown[]> = Pick<FetchOptions<Asked>, 'addressOf'> & {
  readonly route?: string | undefined
  readonly scope?: string | undefined
}

/** One fetch request at one limiter. An adapter adds the details of its framework. */
export abstract class FetchContext<
  Asked extends readonly [native: object, ...more: unknown[]],
> extends GuardedContext<Asked[0], FetchReply<Asked>> {
  readonly method: string
  readonly needsAddress = true
  readonly response: HttpResponse = {
    headersSent: false,
    getHeaderNames: () => [...this.headers.keys()],
    getHeader: (name) => this.headers.get(name) ?? undefined,
    setHeader: (name, value) => this.headers.set(name, value),
    removeHeader: (name) => this.headers.delete(name),
  }
  protected readonly asked: Asked
  readonly #request: Request
  readonly #place: FetchPlace<Asked>
  /** Ends the response, once. `undefined`: the client disconnected first. */
  #end: (status: number | undefined) => void = () => undefined
  readonly #ended = new Promise<number | undefined>((resolve) => {
    this.#end = resolve
  })
  #isHolding = false
  #answer: Response | undefined

  constructor(asked: Asked, request: Request, place: FetchPlace<Asked> = {}) {
    super(asked[0], place.scope)
    this.asked = asked
    this.method = request.method
    this.#request = request
    this.#place = place
  }

  protected abstract readonly info: FetchInfo | undefined

  /** The fields to set, later those of the response. A subclass may replace the object. */
  protected abstract readonly headers: Headers

  get route(): string | undefined {
    return this.#place.route
  }

  get ip(): string | undefined {
    const { addressOf } = this.#place
    if (addressOf) return addressOf(...this.asked)
    return proxyWatch.see(this.header('x-forwarded-for'), this.peer, false)
  }

  get peer(): string | undefined {
    return this.info?.remoteAddress
  }

  get path(): string {
    return this.#target.split(/[?#]/, 1)[0] ?? ''
  }

  /** The URL without its origin. */
  get #target(): string {
    const { url } = this.#request
    return url.slice(url.indexOf('/', url.indexOf('://') + '://'.length))
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined
  }

  /** For queues, which run on Node only. */
  get content(): RequestContent {
    const { body, bodyUsed } = this.#request
    const stream = () => (bodyUsed ? this.readAgain() : (body ?? []))
    return { url: this.#target, parsed: undefined, stream }
  }

  /** Returns a body that other code has read, if the framework keeps it. */
  protected readAgain(): AsyncIterable<Uint8Array> {
    throw new Error('the body of the request was read before it could be queued')
  }

  settleAtEnd(hold: Hold): void {
    this.#isHolding = true
    // Some runtimes have no signal.
    const signal: AbortSignal | undefined = this.#request.signal
    const leave = () => this.#end(undefined)
    signal?.addEventListener('abort', leave, { once: true })
    if (signal?.aborted) leave()
    const work = this.#ended.then((status) =>
      status === undefined ? hold.abort() : hold.finish(status),
    )
    this.info?.waitUntil?.(work)
  }

  /** Sends the Content-Length of the body, for HEAD too. */
  send(status: number, { contentType, text }: ResponseBody): void {
    const length = new TextEncoder().encode(text).length
    this.headers.set('Content-Type', contentType)
    this.headers.set('Content-Length', String(length))
    const body = this.method === 'HEAD' ? null : text
    this.#answer = new Response(body, { status, headers: this.headers })
    this.#end(status)
  }

  async callHandler(handler: FetchReply<Asked>, { decision }: Refusal): Promise<void> {
    this.#answer = this.finish(await handler(...this.asked, decision))
  }

  /**
   * Decides the request. Returns the response if the request ends here.
   * @throws what a user function throws, always as an object
   */
  async decide(guard: Guard<Asked[0], FetchReply<Asked>>): Promise<Response | undefined> {
    try {
      if (await throwingObjects(() => serve(this, guard))) return undefined
    } catch (error) {
      this.fail()
      throw error
    }
    // nginx's status for a client that disconnected early; nobody reads it.
    return this.#answer ?? new Response(null, { status: 499 })
  }

  /** Returns the response to send, and settles the request when its body ends. */
  finish(response: Response, headers?: Headers): Response {
    const { body, status, statusText } = response
    hideOnRedirect(this, status)
    const isWatched = this.#isHolding && this.method !== 'HEAD'
    const sent = body && isWatched ? watchedBody(body, status, this.#end) : body
    // A network error has no status.
    if (sent === body) this.#end(status || undefined)
    if (sent === body && !headers) return response
    return new Response(sent, { status, statusText, headers: headers ?? response.headers })
  }

  /** Settles a request whose handler failed. */
  fail(): void {
    this.#end(500)
  }

  /** Returns the response of a mounted handler; `undefined` if it leaves the request alone. */
  async answerBy(handler: Handler<Request>, prefix: string): Promise<Response | undefined> {
    const reply = await mountedReply(handler, { native: this.#request, request: this }, prefix)
    return reply && new Response(reply.body ?? null, reply)
  }
}
