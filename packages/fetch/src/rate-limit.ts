import type { Handler, Limiting, RequestDecision } from '@sluice/http'
import { invalid, routeScope, withLimiter } from '@sluice/http'
import { createFetchGuard, type FetchInfo } from './adapter/index.ts'
import { WebContext } from './context.ts'
import type { FetchHandler, RateLimitOptions } from './options.ts'

/** The decision on one request, for those who answer it themselves. */
export interface FetchPassage {
  /** `undefined` when the request was skipped. */
  readonly decision: RequestDecision | undefined
  /** The answer to a request that ends here; `undefined` if the request continues. */
  readonly answer: Response | undefined
  /** Makes the response to send, with the fields, and settles the request when its body ends. */
  finish(response: Response): Response
  /** Settles the request where there is no response: its handler failed. */
  fail(): void
}

export interface RateLimit<Info extends object = FetchInfo>
  extends Limiting<[request: Request, info: Info]> {
  /** Wraps a handler. */
  (handler: FetchHandler<Info>): (request: Request, info: Info) => Promise<Response>
  /**
   * Decides on a request.
   * @throws what a function of the options throws
   */
  decide(request: Request, info: Info): Promise<FetchPassage>
}

/**
 * Limits the requests of a handler.
 * @example
 * const limited = rateLimit({ limit: 100, window: '1m' })
 * const handler = limited(hello)
 * const answer = await handler(request, { remoteAddress: socket.remoteAddress })
 * @throws SluiceError when an option is unknown, missing or out of range
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
 * Serves a handler under a path; `undefined`: it leaves the request alone.
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
