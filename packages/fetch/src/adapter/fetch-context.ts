import type {
  Guard,
  Hold,
  HttpResponse,
  MaybePromise,
  Handler as MountableHandler,
  Refusal,
  RequestContent,
  RequestDecision,
  ResponseBody,
  Scope,
} from '@sluice/http'
import {
  andThen,
  GuardedContext,
  handlerRequest,
  hideOnRedirect,
  ProxyWatch,
  serve,
  throwingObjects,
} from '@sluice/http'
import { FetchEnd } from './fetch-end.ts'
import type { FetchOptions } from './fetch-guard.ts'

/** The part of a request that the application knows. */
export interface FetchInfo {
  /** The client's address, as the runtime tells it: no text that a client can send. */
  readonly remoteAddress?: string | undefined
  /** Keeps the runtime awake for the work after the response. @default it stays awake */
  waitUntil?(work: Promise<unknown>): void
}

type Exchange = readonly [native: object, ...more: unknown[]]

/** Replies to a refused request, with the arguments of the framework's handlers. */
export type FetchReply<Asked extends Exchange, Decision = RequestDecision> = (
  ...asked: [...Asked, decision: Decision]
) => MaybePromise<Response>

/** The place of a limiter. */
export interface FetchPlace<Asked extends Exchange> extends Pick<FetchOptions<Asked>, 'addressOf'> {
  readonly route?: string | undefined
  readonly scope?: Scope
}

const proxyWatch = new ProxyWatch({
  trust: 'addressOf',
  trustOne: 'behind a proxy give the option addressOf',
  trustAll: 'take the address that the outermost of your own proxies has written',
})

/** One request of fetch at one limiter. An adapter extends it by the details of its framework. */
export abstract class FetchContext<Asked extends Exchange> extends GuardedContext<
  Asked[0],
  FetchReply<Asked>
> {
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
  /** Settles what the request holds when its response is over. */
  protected readonly end: FetchEnd = new FetchEnd()
  #answer: Response | undefined

  constructor(asked: Asked, request: Request, place: FetchPlace<Asked> = {}) {
    super(asked[0], place.scope)
    this.asked = asked
    this.#request = request
    this.#place = place
  }

  protected abstract readonly info: FetchInfo | undefined

  /** The fields to set, and later those of the response. They may be replaced meanwhile. */
  protected abstract readonly headers: Headers

  get method(): string {
    return this.#request.method
  }

  get route(): string | undefined {
    return this.#place.route
  }

  get ip(): string | undefined {
    const { addressOf } = this.#place
    if (addressOf) return addressOf(...this.asked)
    const forwarded = this.header('x-forwarded-for')
    return forwarded === undefined ? this.peer : proxyWatch.see(forwarded, this.peer, false)
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
    const chunks = () => (bodyUsed ? this.readAgain() : (body ?? []))
    let stream: RequestContent['stream'] | undefined
    return {
      url: this.#target,
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
    // Some runtimes have no signal.
    const work = this.end.add(hold, this.#request.signal)
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

  callHandler(handler: FetchReply<Asked>, { decision }: Refusal): unknown {
    return andThen(handler(...this.asked, decision), (response) => {
      this.#answer = this.finish(response)
    })
  }

  /**
   * Decides on the request, and answers it if it goes no further.
   * @throws what a function of the user throws, always an object
   */
  async decide({ check }: Guard<Asked[0], FetchReply<Asked>>): Promise<Response | undefined> {
    try {
      if (await throwingObjects(() => serve(this, { check }))) return undefined
    } catch (error) {
      this.fail()
      throw error
    }
    // nginx's status for a client that left before the answer. No client reads it.
    return this.#answer ?? new Response(null, { status: 499 })
  }

  /** Returns the response to send, and settles the request when its body ends. */
  finish(response: Response, headers: Headers = response.headers): Response {
    const { status, statusText } = response
    hideOnRedirect(this, status)
    if (this.method === 'HEAD') this.end.finish(status)
    const body = this.end.watch(response.body, status)
    if (body === response.body && headers === response.headers) return response
    return new Response(body, { status, statusText, headers })
  }

  /** Settles what the request holds, without a response: its handler failed. */
  fail(): void {
    this.end.finish(500)
  }

  /** Returns the response of a handler mounted at a path, or `undefined` for other requests. */
  async answerBy(
    handler: MountableHandler<Request>,
    prefix: string,
  ): Promise<Response | undefined> {
    if (!`${this.path}/`.startsWith(`${prefix}/`)) return undefined
    const request = handlerRequest({ native: this.#request, request: this }, prefix)
    const reply = await throwingObjects(() => handler(request))
    if (!reply) return undefined
    const { status, headers = {}, body = null } = reply
    return new Response(body, { status, headers })
  }
}
