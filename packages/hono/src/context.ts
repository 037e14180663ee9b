import { FetchContext } from '@sluice/fetch/adapter'
import type { Guard, MaybePromise, Refusal, RequestDecision, Scope } from '@sluice/http'
import { andThen, hideOnRedirect, routeScope } from '@sluice/http'
import type { Context, Next } from 'hono'
import type { RateLimitHandler } from './options.ts'

/** A request of Hono at one middleware of ours. */
export class HonoContext extends FetchContext<Context, RateLimitHandler> {
  scope: Scope
  readonly #next: Next
  /** With fields of ours, Hono would copy the response to an upgrade: some runtimes refuse that. */
  #ofUpgrade: Headers | undefined

  constructor(native: Context, next: Next, addressOf?: (context: Context) => string | undefined) {
    const { raw, matchedRoutes, routeIndex, method } = native.req
    super(native, {
      request: raw,
      addressOf: addressOf && (() => addressOf(native)),
      remoteAddress: () => connectionOf(native),
      waitUntil: (work) => waitUntil(native, work),
    })
    this.#ofUpgrade = raw.headers.has('upgrade') ? new Headers() : undefined
    // Not by `hono/route`: a copy of it in the other form, CommonJS or ESM, knows no such request.
    const own = matchedRoutes[routeIndex]
    this.scope = own ? scopeOf(own, method) : ''
    this.#next = next
  }

  get route(): string | undefined {
    return this.native.req.matchedRoutes.findLast(isHandler)?.path
  }

  protected override show(decision: RequestDecision): void {
    this.native.set('rateLimit', decision)
  }

  protected get headers(): Headers {
    return this.#ofUpgrade ?? this.native.res.headers
  }

  protected override async *readAgain(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(await this.native.req.arrayBuffer())
  }

  /** A refusal is no upgrade: its fields stand beside those of the application. */
  override decide(check: Guard<Context, RateLimitHandler>['check']): Promise<Response | undefined> {
    return super.decide((context) =>
      andThen(check(context), (passage) => {
        const { action } = passage.verdict
        if (action === 'reject' || action === 'answer') this.#ofUpgrade = undefined
        return passage
      }),
    )
  }

  protected reply(handler: RateLimitHandler, { decision }: Refusal): MaybePromise<Response> {
    return handler(this.native, this.#next, decision)
  }

  finish(response: Response): Response {
    hideOnRedirect(this, response.status)
    const body = this.end.watch(response)
    if (body === response.body) return response
    // On Node the connection tells of the end, also if another middleware drops the body.
    const { outgoing } = serverOf(this.native.env)
    outgoing?.once?.('close', () => {
      this.end.finish(outgoing.writableFinished ? outgoing.statusCode : undefined)
    })
    return new Response(body, response)
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

function serverOf(env: Env | undefined): Env {
  return env?.server ?? env ?? {}
}

function connectionOf({ env, req }: Context): string | undefined {
  const server = serverOf(env)
  const address = server.incoming?.socket?.remoteAddress ?? server.remoteAddr?.hostname
  return address ?? server.requestIP?.(req.raw)?.address
}

function waitUntil(context: Context, work: Promise<unknown>): void {
  try {
    context.executionCtx.waitUntil(work)
  } catch {
    // Runtimes that stay awake have no such context, and Hono throws where there is none.
  }
}
