import {
  type JoinedObservers,
  type Limiter,
  notify,
  notifyDecided,
  type SkipEvent,
} from '@sluice/core'
import type { RequestContext } from '../adapter/context.ts'
import type { HttpRequest } from '../adapter/request.ts'
import { routeScope } from '../routes/scope.ts'
import type { Decided } from './decided.ts'

/** Lets a request pass. */
type Pass<Native extends object, Passed> = (context: RequestContext<Native>) => Passed

/**
 * Tells the observers of a guard what becomes of its requests. Costs nothing without an observer.
 */
export class Observation<Native extends object> {
  readonly #observers: JoinedObservers<Native>
  readonly #limiter: Limiter
  /** Tells whether somebody observes decisions. */
  readonly isObserved: boolean

  constructor(observers: JoinedObservers<Native>, limiter: Limiter) {
    this.#observers = observers
    this.#limiter = limiter
    this.isObserved = observers.onDecision !== undefined || observers.onShadow !== undefined
  }

  /** Tells of a decision: once for each request. */
  notifyDecision({ context, decision, checks, timing }: Decided<Native>, isQueued = false): void {
    if (!this.isObserved) return
    const { native, request } = context
    notifyDecided(this.#observers, {
      request: native,
      route: routeOf(request),
      method: request.method,
      decision,
      checks,
      store: this.#limiter.store,
      timing,
      isQueued,
    })
  }

  /** Tells of each request that passes uncounted in some way. */
  skipping<Passed>(reason: SkipEvent['reason'], pass: Pass<Native, Passed>): Pass<Native, Passed> {
    const { onSkip } = this.#observers
    if (!onSkip) return pass
    return (context) => {
      const { native, request } = context
      const { method } = request
      notify(onSkip, { request: native, route: routeOf(request), method, reason })
      return pass(context)
    }
  }
}

/**
 * The methods that the name of a route may have: on one for all methods, clients make up others.
 */
const toldMethods: ReadonlySet<string> = new Set(
  'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT QUERY'.split(' '),
)

function routeOf({ method, rule, route }: HttpRequest): string | undefined {
  if (route === undefined) return rule
  return routeScope(toldMethods.has(method) ? method : 'OTHER', route)
}
