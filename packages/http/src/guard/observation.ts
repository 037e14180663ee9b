import {
  andThen,
  isPromise,
  type JoinedObservers,
  type Limiter,
  type MaybePromise,
  notify,
  notifyDecided,
  type SkipEvent,
} from '@sluice/core'
import type { RequestContext } from '../adapter/context.ts'
import { routeScope } from '../routes/scope.ts'
import type { Decided } from './decided.ts'

/** Lets a request pass. */
type Pass<Native extends object, Passed> = (context: RequestContext<Native>) => Passed

/** Tells the observers of a guard what becomes of its requests. Costs nothing where nobody observes. */
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

  /** Decides, and notes how long that takes. */
  timed(decide: () => MaybePromise<Decided<Native>>): MaybePromise<Decided<Native>> {
    const startedAt = performance.now()
    const decided = decide()
    const isImmediate = !isPromise(decided)
    return andThen(decided, (known) => {
      const atMs = performance.now()
      const { context, decision, checks, mayGiveBack } = known
      const timing = { atMs, durationMs: atMs - startedAt, isImmediate }
      return { context, decision, checks, mayGiveBack, timing }
    })
  }

  /** Tells of a decision: once for each request. */
  notifyDecision({ context, decision, checks, timing }: Decided<Native>, isQueued = false): void {
    if (!this.isObserved) return
    const { store } = this.#limiter
    // Named one by one: to copy them by spreading takes microseconds.
    const { request, route, method } = sourceOf(context)
    notifyDecided(this.#observers, {
      request,
      route,
      method,
      decision,
      checks,
      store,
      timing,
      isQueued,
    })
  }

  /** Tells of each request that passes uncounted in some way. */
  skipping<Passed>(reason: SkipEvent['reason'], pass: Pass<Native, Passed>): Pass<Native, Passed> {
    const { onSkip } = this.#observers
    if (!onSkip) return pass
    return (context) => {
      notify(onSkip, { ...sourceOf(context), reason })
      return pass(context)
    }
  }
}

/** The methods that the name of a route may have: on one for all methods, clients make up others. */
const toldMethods: ReadonlySet<string> = new Set(
  'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT QUERY'.split(' '),
)

function sourceOf<Native extends object>({ native, request }: RequestContext<Native>) {
  const { method, rule, route } = request
  const told = toldMethods.has(method) ? method : 'OTHER'
  return { request: native, route: route === undefined ? rule : routeScope(told, route), method }
}
