import type {
  Guard,
  Hold,
  HttpResponse,
  MaybePromise,
  Handler as MountableHandler,
  Refusal,
  RequestContent,
  ResponseBody,
} from '@sluice/http'
import {
  andThen,
  GuardedContext,
  handlerRequest,
  ProxyWatch,
  serve,
  throwingObjects,
} from '@sluice/http'
import { FetchEnd } from './fetch-end.ts'

/** The part of a request that the application knows. */
export interface FetchInfo {
  /** The client's address, as the runtime tells it: no text that a client can send. */
  readonly remoteAddress?: string | undefined
  /** Keeps the runtime awake for the work after the response. @default it stays awake */
  waitUntil?(work: Promise<unknown>): void
}

const proxyWatch = new ProxyWatch({
  trust: 'addressOf',
  trustOne: 'behind a proxy give the option addressOf',
  trustAll: 'take the address that the outermost of your own proxies has written',
})

/** One request of fetch at one limiter. An adapter extends it by the details of its framework. */
export abstract class FetchContext<Native extends object, Handler> extends GuardedContext<
  Native,
  Handler
> {
  readonly needsAddress = true
  readonly response: HttpResponse = {
    headersSent: false,
    getHeaderNames: () => [...this.headers.keys()],
    getHeader: (name) => this.headers.get(name) ?? undefined,
    setHeader: (name, value) => this.headers.set(name, value),
    removeHeader: (name) => this.headers.delete(name),
  }
  /** Settles what the request holds when its response is over. */
  protected readonly end: FetchEnd
  readonly #asked: Request
  readonly #addressOf: (() => string | undefined) | undefined
  #answer: Response | undefined

  /** @param addressOf the user's way to find the client's address, if there is one */
  constructor(native: Native, asked: Request, addressOf?: () => string | undefined) {
    super(native)
    this.end = new FetchEnd(asked)
    this.#asked = asked
    this.#addressOf = addressOf
  }

  protected abstract readonly info: FetchInfo | undefined
  /** The fields to set, and later those of the response. They may be replaced meanwhile. */
  protected abstract readonly headers: Headers
  /** Makes the response to send of one of the application's, and settles when that is over. */
  abstract finish(response: Response): Response
  /** Has the user's handler reply. */
  protected abstract reply(handler: Handler, refusal: Refusal): MaybePromise<Response>

  get method(): string {
    return this.#asked.method
  }

  get ip(): string | undefined {
    if (this.#addressOf) return this.#addressOf()
    const forwarded = this.header('x-forwarded-for')
    return forwarded === undefined ? this.peer : proxyWatch.see(forwarded, this.peer, false)
  }

  get peer(): string | undefined {
    return this.info?.remoteAddress
  }

  get path(): string {
    const [, path = ''] = /^[^:]+:\/\/[^/?#]*([^?#]*)/.exec(this.#asked.url) ?? []
    return path === '' ? '/' : path
  }

  header(name: string): string | undefined {
    return this.#asked.headers.get(name) ?? undefined
  }

  /** For queues, which run on Node only. */
  get content(): RequestContent {
    const { url, body, bodyUsed } = this.#asked
    const chunks = () => (bodyUsed ? this.readAgain() : (body ?? []))
    let stream: RequestContent['stream'] | undefined
    return {
      url: url.slice(url.indexOf('/', url.indexOf('://') + '://'.length)),
      parsed: undefined,
      get stream() {
        // Not imported, so that this file loads where there is no Node.
        stream ??= globalThis.process.getBuiltinModule('node:stream').Readable.from(chunks())
        return stream
      },
    }
  }

  /** The body that other code has read, where the framework keeps it. */
  protected readAgain(): AsyncIterable<Uint8Array> {
    throw new Error('the body of the request was read before it could be queued')
  }

  settleAtEnd(hold: Hold): void {
    const work = this.end.add(hold)
    this.info?.waitUntil?.(work)
  }

  /** Has the length of the body, also in the answer to a HEAD. */
  send(status: number, { contentType, text }: ResponseBody): void {
    const length = new TextEncoder().encode(text).length
    this.headers.set('Content-Type', contentType)
    this.headers.set('Content-Length', String(length))
    const body = this.method === 'HEAD' ? null : text
    this.#answer = new Response(body, { status, headers: this.headers })
    this.end.finish(status)
  }

  callHandler(handler: Handler, refusal: Refusal): unknown {
    return andThen(this.reply(handler, refusal), (response) => {
      this.#answer = this.finish(response)
    })
  }

  /**
   * Decides on the request, and answers it if it goes no further.
   * @throws what a function of the user throws, always an object
   */
  async decide(check: Guard<Native, Handler>['check']): Promise<Response | undefined> {
    try {
      if (await throwingObjects(() => serve(this, { check }))) return undefined
    } catch (error) {
      this.fail()
      throw error
    }
    // nginx's status for a client that left before the answer. No client reads it.
    return this.#answer ?? new Response(null, { status: 499 })
  }

  /** Has a mounted handler answer; `undefined`: it leaves the request alone. */
  async answerBy(
    handler: MountableHandler<Request>,
    prefix: string,
  ): Promise<Response | undefined> {
    const request = handlerRequest({ native: this.#asked, request: this }, prefix)
    const reply = await throwingObjects(() => handler(request))
    if (!reply) return undefined
    const { status, headers = {}, body = null } = reply
    return new Response(body, { status, headers })
  }

  /** Settles what the request holds, without a response: its handler failed. */
  fail(): void {
    this.end.finish(500)
  }
}
