import type { Handler, Limiting, RequestDecision } from '@sluice/http'
import { invalid, routeScope, withLimiter } from '@sluice/http'
import { createFetchGuard, type FetchInfo } from './adapter/index.ts'
import { WebContext } from './context.ts'
import type { FetchCall, FetchHandler, RateLimitOptions } from './options.ts'

/** One decided request, for code that sends the response itself. */
export interface FetchPassage {
  /** `undefined` if the request was skipped. */
  readonly decision: RequestDecision | undefined
  /** The response to a request that ends here; `undefined` if the request continues. */
  readonly answer: Response | undefined
  /** Adds the headers to a response, and settles the request when its body ends. */
  finish(response: Response): Response
  /** Settles a request whose handler failed. */
  fail(): void
}

export interface RateLimit<Info extends object = FetchInfo> extends Limiting<FetchCall<Info>> {
  /** Wraps a handler. */
  (handler: FetchHandler<Info>): (request: Request, info: Info) => Promise<Response>
  /**
   * Decides a request.
   * @throws what a function in the options throws
   */
  decide(request: Request, info: Info): Promise<FetchPassage>
}

/**
 * Limits the requests of a handler.
 * @example
 * const limited = rateLimit({ limit: 100, window: '1m' })
 * const handler = limited(hello)
 * const answer = await handler(request, { remoteAddress: socket.remoteAddress })
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function rateLimit<Info extends object = FetchInfo>(
  options: RateLimitOptions<Info>,
): RateLimit<Info> {
  const guard = createFetchGuard(options, ['route'])
  const place = { addressOf: options.addressOf, ...placeOf(options.route) }
  const contextOf = (request: Request, info: Info) =>
    new WebContext([request, info], request, place)

  async function decide(request: Request, info: Info): Promise<FetchPassage> {
    const asked = contextOf(request, info)
    const answer = await asked.decide(guard)
    const finish = (response: Response): Response => asked.finish(response)
    return { decision: asked.shown, answer, finish, fail: () => asked.fail() }
  }

  function limit(handler: FetchHandler<Info>): (request: Request, info: Info) => Promise<Response> {
    return async function sluiceHandler(request, info) {
      const { answer, decision, finish, fail } = await decide(request, info)
      if (answer) return answer
      try {
        return finish(await handler(request, info, decision))
      } catch (error) {
        fail()
        throw error
      }
    }
  }

  return withLimiter(Object.assign(limit, { decide }), guard, contextOf)
}

/**
 * Serves a handler under a path. Returns `undefined` for requests that the handler leaves alone.
 * @example
 * const page = mount(metricsPage, '/metrics')
 * const answer = (await page(request, {})) ?? hello(request)
 */
export function mount(
  handler: Handler<Request>,
  prefix = '',
): (request: Request, info: FetchInfo) => Promise<Response | undefined> {
  return (request, info) => new WebContext([request, info], request).answerBy(handler, prefix)
}

function placeOf(route: string | undefined) {
  if (route === undefined) return {}
  const [, method, pattern] = /^(?:([A-Z]+) )?(\/\S*)$/.exec(String(route)) ?? []
  if (pattern === undefined) {
    throw invalid({ option: 'route' }, route, `a route, such as '/health' or 'POST /login'`)
  }
  return { route: pattern, scope: routeScope(method, pattern) }
}
