import {
  DecisionNotifier,
  type DecisionTiming,
  type JoinedObservers,
  notify,
  type SkipEvent,
  type Store,
} from '@sluice/core'
import type { Found } from '../lifecycle/account.ts'
import type { RequestContext } from '../request/context.ts'
import type { HttpRequest } from '../request/request.ts'
import { routeScope } from '../request/scope.ts'

type Pass<Native extends object, Passed> = (context: RequestContext<Native>) => Passed

/** Tells the observers of a guard what becomes of its requests. Free without an observer. */
export class Observation<Native extends object> {
  readonly #observers: JoinedObservers<Native>
  readonly #notifier: DecisionNotifier<Native>

  constructor(observers: JoinedObservers<Native>, store: Store) {
    this.#observers = observers
    this.#notifier = new DecisionNotifier(observers, store)
  }

  /** Tells whether somebody observes decisions. */
  get isObserved(): boolean {
    return this.#notifier.isObserved
  }

  /** Begins the timing of a decision that the store alone comes to. */
  time(): DecisionTiming {
    return this.#notifier.time()
  }

  /** Tells of a decision: once for each request. */
  notifyDecision({ context, decision, checks, timing }: Found<Native>, isQueued = false): void {
    if (!this.isObserved) return
    const { native, request } = context
    this.#notifier.notify({
      request: native,
      route: routeOf(request),
      method: request.method,
      decision,
      checks,
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

/** The methods that the name of a route may have: clients can make up others. */
const toldMethods: ReadonlySet<string> = new Set(
  'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT QUERY'.split(' '),
)

/** The most patterns whose names are kept, should an application make patterns up. */
const maxPatterns = 1_000
/** Names of routes by pattern and method: a text that is made anew costs more than all the rest. */
const namesByPattern = new Map<string, Map<string, string>>()

function routeOf({ method, rule, route }: HttpRequest): string | undefined {
  if (route === undefined) return rule
  const told = toldMethods.has(method) ? method : 'OTHER'
  return namesByPattern.get(route)?.get(told) ?? newName(route, told)
}

function newName(pattern: string, method: string): string {
  if (namesByPattern.size >= maxPatterns) namesByPattern.clear()
  const names = namesByPattern.get(pattern) ?? new Map<string, string>()
  namesByPattern.set(pattern, names)
  const name = routeScope(method, pattern)
  names.set(method, name)
  return name
}
