import { FetchContext, fetchFields } from '@sluice/fetch/adapter'
import type { HttpResponse, MaybePromise, Refusal, RequestDecision, Scope } from '@sluice/http'
import { fieldsOn, hideOnRedirect, routeScope, setFields } from '@sluice/http'
import type { Context, Next } from 'hono'
import type { RateLimitHandler } from './options.ts'

/** A request of Hono at one middleware of ours. */
export class HonoContext extends FetchContext<Context, RateLimitHandler> {
  /** The fields that Hono puts on every response to this request. */
  readonly response: HttpResponse = fetchFields(() => this.#detached ?? this.native.res.headers)
  scope: Scope
  readonly #next: Next
  /**
   * The fields of a request for another protocol. Once `c.res` is read, Hono copies the response
   * of the handler, and a runtime may not accept a copy of status 101.
   */
  #detached: Headers | undefined

  constructor(native: Context, next: Next, addressOf?: (context: Context) => string | undefined) {
    super(native, {
      request: native.req.raw,
      addressOf: addressOf && (() => addressOf(native)),
      remoteAddress: () => connectionOf(native),
      waitUntil: (work) => waitUntil(native, work),
    })
    if (native.req.raw.headers.has('upgrade')) this.#detached = new Headers()
    // Not by `hono/route`: a copy of it in the other form, CommonJS or ESM, knows no such request.
    const own = native.req.matchedRoutes[native.req.routeIndex]
    this.scope = own ? scopeOf(own, native.req.method) : ''
    this.#next = next
  }

  get route(): string | undefined {
    return this.native.req.matchedRoutes.findLast(isHandler)?.path
  }

  /** The body as it comes, or as Hono keeps it for those that read it again. */
  protected override get body(): AsyncIterable<Uint8Array> | null {
    const { req } = this.native
    return req.raw.bodyUsed ? bytesOf(req) : super.body
  }

  protected override show(decision: RequestDecision): void {
    this.native.set('rateLimit', decision)
  }

  protected respond(status: number, body: string, fields: Record<string, string>): Response {
    this.#attach()
    for (const [name, value] of Object.entries(fields)) this.response.setHeader(name, value)
    return new Response(body, { status, headers: this.native.res.headers })
  }

  protected reply(handler: RateLimitHandler, { decision }: Refusal): MaybePromise<Response> {
    this.#attach()
    return handler(this.native, this.#next, decision)
  }

  finish(response: Response): Response {
    if (response.status === 101) {
      this.end.finish(101)
      return response
    }
    this.#attach()
    hideOnRedirect(this, response.status)
    const body = this.end.watch(response)
    if (body === response.body) return response
    this.#settleOnClose()
    return new Response(body, response)
  }

  override fail(): void {
    this.#attach()
    super.fail()
  }

  /** Puts the fields on the response that there is by now. */
  #attach(): void {
    const fields = this.#detached
    if (!fields) return
    this.#detached = undefined
    setFields(this.response, fieldsOn(this.shown, this.response))
    for (const [name, value] of fields) {
      if (this.response.getHeader(name) === undefined) this.response.setHeader(name, value)
    }
  }

  /** On Node the connection tells of the end, also if another middleware drops the body. */
  #settleOnClose(): void {
    const { outgoing } = nodeOf(this.native.env)
    outgoing?.once?.('close', () => {
      this.end.finish(outgoing.writableFinished ? outgoing.statusCode : undefined)
    })
  }
}

/** A route of Hono, as far as Sluice reads it. */
interface Registered {
  readonly path: string
  readonly method: string
}

/** Middleware stands under `ALL` too, mostly with a wildcard. */
function isHandler({ path, method }: Registered): boolean {
  return method !== 'ALL' || !path.includes('*')
}

export function scopeOf({ path, method }: Registered, asked: string): Scope {
  if (path === '*' || path === '/*') return ''
  return routeScope(method === 'ALL' ? undefined : asked, path)
}

/** The connection in `env`, as `@hono/node-server`, Deno and Bun put it there. */
interface Env {
  readonly server?: Env
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } }
  readonly outgoing?: {
    readonly statusCode: number
    readonly writableFinished: boolean
    once?(event: 'close', listener: () => void): unknown
  }
  readonly remoteAddr?: { readonly hostname?: string }
  requestIP?(request: Request): { readonly address: string } | null
}

function nodeOf(env: Env | undefined): Env {
  return env?.server ?? env ?? {}
}

function connectionOf({ env, req }: Context): string | undefined {
  const node = nodeOf(env)
  const { incoming, remoteAddr } = node
  const address = incoming?.socket?.remoteAddress ?? remoteAddr?.hostname
  return address ?? node.requestIP?.(req.raw)?.address
}

function waitUntil(context: Context, work: Promise<unknown>): void {
  try {
    context.executionCtx.waitUntil(work)
  } catch {
    // Runtimes that stay awake have no such context, and Hono throws where there is none.
  }
}

async function* bytesOf(request: Context['req']): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(await request.arrayBuffer())
}
