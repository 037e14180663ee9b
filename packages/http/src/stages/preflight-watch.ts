import type { MaybePromise } from '@sluice/core'
import type { RequestContext } from '../adapter/context.ts'
import type { HttpRequest } from '../adapter/request.ts'
import type { HttpResponse } from '../adapter/response.ts'
import { type Passage, passWithoutFields } from '../guard/passage.ts'
import type { Hold } from '../lifecycle/hold.ts'

/** A browser asks whether it may ask; a refusal would be a network error to it. */
export function isPreflight(request: HttpRequest): boolean {
  return (
    request.method === 'OPTIONS' &&
    request.header('origin') !== undefined &&
    request.header('access-control-request-method') !== undefined
  )
}

/**
 * Time for which an address is remembered, in ms: as long as the longest window, within these
 * bounds.
 */
const minRememberMs = 60_000
const maxRememberMs = 3_600_000

/** The most addresses that are remembered; beyond that all are forgotten. */
const maxAddresses = 10_000

interface PreflightOptions<Native extends object> {
  /** Tells whether all preflights pass, and none is judged. */
  readonly isAlwaysPassed: boolean
  /** The windows of the policies. */
  readonly windowsMs: readonly number[]
  /** Takes what a request costs, without asking. */
  charge(context: RequestContext<Native>): MaybePromise<unknown>
}

/**
 * Tells preflights of browsers from requests of the same shape, which any client can send to a
 * handler of all methods. The answer shows whether a request was a preflight: a preflight gets a
 * CORS answer, or reaches no handler. Any other request is charged then, and its address gets no
 * further request through uncounted.
 */
export class PreflightWatch<Native extends object> {
  readonly #isAlwaysPassed: boolean
  readonly #rememberMs: number
  readonly #charge: PreflightOptions<Native>['charge']
  readonly #suspectUntil = new Map<string, number>()

  constructor({ isAlwaysPassed, windowsMs, charge }: PreflightOptions<Native>) {
    this.#isAlwaysPassed = isAlwaysPassed
    this.#rememberMs = Math.min(maxRememberMs, Math.max(minRememberMs, ...windowsMs))
    this.#charge = charge
  }

  /** Tells whether a preflight counts as any other request. */
  counts(request: HttpRequest): boolean {
    if (this.#isAlwaysPassed) return false
    return request.isForAllMethods === true || this.#isSuspect(request)
  }

  /** Lets a preflight pass, and judges it by its answer. */
  pass(context: RequestContext<Native>): Passage<never> {
    return this.#isAlwaysPassed
      ? passWithoutFields
      : { ...passWithoutFields, hold: this.#hold(context) }
  }

  /** Tells whether the address has sent requests in the shape of preflights that were none. */
  #isSuspect({ ip = '' }: HttpRequest): boolean {
    const until = this.#suspectUntil.get(ip)
    if (until === undefined) return false
    if (Date.now() < until) return true
    this.#suspectUntil.delete(ip)
    return false
  }

  /** Judges a request that passes uncounted, by its response. */
  #hold(context: RequestContext<Native>): Hold {
    const { response } = context
    // Fields that stand there before the limiter stand on the answers of all handlers, and tell
    // nothing.
    const isAnyAnswer = allowsCors(response)
    const judge = (status?: number) => {
      const isCors = allowsCors(response) && !isAnyAnswer
      return !isCors && !isUnserved(response, status) && this.#suspect(context)
    }
    return { finish: judge, abort: judge }
  }

  #suspect(context: RequestContext<Native>): Promise<unknown> {
    if (this.#suspectUntil.size >= maxAddresses) this.#suspectUntil.clear()
    this.#suspectUntil.set(context.request.ip ?? '', Date.now() + this.#rememberMs)
    // Its next request meets the same error, and hands it on.
    return Promise.resolve(context)
      .then(this.#charge)
      .catch(() => undefined)
  }
}

/**
 * Tells whether no handler did anything: there is none, or the router told in its place what it
 * allows.
 */
function isUnserved(response: HttpResponse, status: number | undefined): boolean {
  return status === 404 || status === 405 || response.getHeader('allow') !== undefined
}

function allowsCors(response: HttpResponse): boolean {
  return (
    response.getHeader('access-control-allow-methods') !== undefined ||
    response.getHeader('access-control-allow-headers') !== undefined
  )
}
