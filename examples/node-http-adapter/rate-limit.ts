import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { GuardOptions, MaybePromise } from '@sluice/http'
import { createGuard, NodeRequestContext, serve } from '@sluice/http/adapter'

/** A `node:http` request with a method, which servers always have. */
type NodeRequest = IncomingMessage & { readonly method: string; readonly url: string }

/** Replies to a refused request instead of Sluice. */
export type RateLimitHandler = (request: NodeRequest, response: ServerResponse) => unknown

export type RateLimitOptions = GuardOptions<NodeRequest, RateLimitHandler>

/** `node:http` has no router, so paths are matched as written. */
const routing = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  lenient: false,
}

/**
 * Limits the requests of a listener. Resolves to whether the request continues.
 * @example
 * const limit = rateLimit({ limit: 100, window: '1m' })
 * createServer(async (request, response) => {
 *   if (await limit(request, response)) response.end('hello')
 * })
 */
export function rateLimit(
  options: RateLimitOptions,
  Context: typeof NodeContext = NodeContext,
): (...exchange: Parameters<RequestListener>) => MaybePromise<boolean> {
  const guard = createGuard<NodeRequest, RateLimitHandler>(options, {
    where: 'rateLimit',
    routing,
  })
  return (request, response) => serve(new Context(whole(request), response), guard)
}

/** Node's types make `method` and `url` optional, since responses read by a client have none. */
function whole(request: IncomingMessage): NodeRequest {
  const { method = 'GET', url = '/' } = request
  return Object.assign(request, { method, url })
}

/** One `node:http` request, as Sluice sees it. Extend it to change how requests are read. */
export class NodeContext extends NodeRequestContext<NodeRequest, RateLimitHandler> {
  readonly response: ServerResponse
  readonly route = undefined

  constructor(request: NodeRequest, response: ServerResponse) {
    super(request)
    this.response = response
  }

  get path(): string {
    return this.native.url.replace(/\?.*$/s, '')
  }

  get ip(): string | undefined {
    return this.native.socket.remoteAddress
  }

  callHandler(handler: RateLimitHandler): unknown {
    return handler(this.native, this.response)
  }
}
