import { FetchContext, type FetchInfo } from '@sluice/fetch/adapter'
import type { Hold, RequestDecision, Scope } from '@sluice/http'
import { routeScope, settleAfter } from '@sluice/http'
import type { Context, Next } from 'hono'
import type { RouterRoute } from 'hono/types'
import type { RateLimitOptions } from './options.ts'

/** A limiter and the route pattern where Hono matched it. */
export interface Place extends Pick<RateLimitOptions, 'addressOf'> {
  readonly matched?: RouterRoute | undefined
}

/** A Hono request at one of our middleware functions. */
export class HonoContext extends FetchContext<[context: Context, next: Next]> {
  /** With our fields, Hono would copy an upgrade's response, which some runtimes reject. */
  #ofUpgrade: Headers | undefined

  constructor(native: Context, next: Next, { addressOf, matched }: Place = {}) {
    const { raw, method } = native.req
    super([native, next], raw, { addressOf, scope: matched ? scopeOf(matched, method) : '' })
    this.#ofUpgrade = raw.headers.has('upgrade') ? new Headers() : undefined
  }

  /** The route of a handler. Middleware is registered for `ALL`, mostly with a wildcard. */
  override get route(): string | undefined {
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
          // Hono throws if the runtime has no execution context; such runtimes stay awake anyway.
        }
      },
    }
  }

  /** On Node, the connection signals the end, even if another middleware drops the body. */
  override settleAtEnd(hold: Hold): void {
    const { incoming, outgoing } = serverOf(this.native)
    if (outgoing) settleAfter(outgoing, incoming?.socket, hold)
    else super.settleAtEnd(hold)
  }

  protected override show(decision: RequestDecision): void {
    this.native.set('rateLimit', decision)
  }

  protected get headers(): Headers {
    return this.#ofUpgrade ?? this.native.res.headers
  }

  /** A refusal never upgrades: its fields are added to those of the application. */
  override setStatus(): void {
    this.#ofUpgrade = undefined
  }

  protected override async *readAgain(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(await this.native.req.arrayBuffer())
  }
}

function scopeOf({ path, method }: RouterRoute, asked: string): Scope {
  if (path === '*' || path === '/*') return ''
  return routeScope(method === 'ALL' ? undefined : asked, path)
}

type Ending = Parameters<typeof settleAfter>

/** The connection in `env`, as set by `@hono/node-server`, Deno and Bun. */
interface Server {
  readonly incoming?: { readonly socket?: Ending[1] & { readonly remoteAddress?: string } }
  readonly outgoing?: Ending[0]
  readonly remoteAddr?: { readonly hostname?: string }
  requestIP?(request: Request): { readonly address: string } | null
}

function serverOf({ env }: Context): Server {
  return env?.server ?? env ?? {}
}
