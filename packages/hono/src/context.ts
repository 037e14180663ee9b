import { FetchContext, type FetchInfo } from '@sluice/fetch/adapter'
import type { MaybePromise, Refusal, RequestDecision, Scope } from '@sluice/http'
import { hideOnRedirect, routeScope } from '@sluice/http'
import type { Context, Next } from 'hono'
import type { RouterRoute } from 'hono/types'
import type { RateLimitHandler, RateLimitOptions } from './options.ts'

/** A limiter at the place where Hono has matched it. */
export interface Place {
  readonly addressOf?: RateLimitOptions['addressOf']
  readonly matched?: RouterRoute | undefined
}

/** A request of Hono at one middleware of ours. */
export class HonoContext extends FetchContext<Context, RateLimitHandler> {
  readonly #next: Next
  /** With fields of ours, Hono would copy the response to an upgrade: some runtimes refuse that. */
  #ofUpgrade: Headers | undefined

  constructor(native: Context, next: Next, { addressOf, matched }: Place = {}) {
    const { raw, method } = native.req
    super(native, raw, addressOf && (() => addressOf(native)))
    this.#ofUpgrade = raw.headers.has('upgrade') ? new Headers() : undefined
    this.scope = matched ? scopeOf(matched, method) : ''
    this.#next = next
  }

  /** The route of a handler: middleware is registered for `ALL`, mostly with a wildcard. */
  get route(): string | undefined {
    const { matchedRoutes } = this.native.req
    const isHandler = ({ method, path }: RouterRoute) => method !== 'ALL' || !path.includes('*')
    return matchedRoutes.findLast(isHandler)?.path
  }

  protected get info(): FetchInfo {
    const { native } = this
    const server = serverOf(native)
    const address = server.incoming?.socket?.remoteAddress ?? server.remoteAddr?.hostname
    return {
      remoteAddress: address ?? server.requestIP?.(native.req.raw)?.address,
      waitUntil(work) {
        try {
          native.executionCtx.waitUntil(work)
        } catch {
          // Runtimes that stay awake have no such context, and Hono throws where there is none.
        }
      },
    }
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
  override setStatus(): void {
    this.#ofUpgrade = undefined
  }

  protected reply(handler: RateLimitHandler, { decision }: Refusal): MaybePromise<Response> {
    return handler(this.native, this.#next, decision)
  }

  finish(response: Response): Response {
    hideOnRedirect(this, response.status)
    const body = this.end.watch(response)
    if (body === response.body) return response
    // On Node the connection tells of the end, also if another middleware drops the body.
    const { outgoing } = serverOf(this.native)
    outgoing?.once?.('close', () => {
      this.end.finish(outgoing.writableFinished ? outgoing.statusCode : undefined)
    })
    return new Response(body, response)
  }
}

function scopeOf({ path, method }: RouterRoute, asked: string): Scope {
  if (path === '*' || path === '/*') return ''
  return routeScope(method === 'ALL' ? undefined : asked, path)
}

/** The connection in `env`, as `@hono/node-server`, Deno and Bun put it there. */
interface Server {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } }
  readonly outgoing?: {
    readonly statusCode: number
    readonly writableFinished: boolean
    once?(event: 'close', listener: () => void): unknown
  }
  readonly remoteAddr?: { readonly hostname?: string }
  requestIP?(request: Request): { readonly address: string } | null
}

function serverOf({ env }: Context): Server {
  return env?.server ?? env ?? {}
}
