import {
  DecisionNotifier,
  type JoinedObservers,
  notify,
  type SkipEvent,
  type Store,
} from '@sluice/core'
import type { Found } from '../lifecycle/found.ts'
import type { RequestContext } from '../request/context.ts'
import type { HttpRequest } from '../request/exchange.ts'
import { routeScope } from '../request/scope.ts'

/** Tells the observers of a guard what becomes of its requests. Free without an observer. */
export class Observation<Native extends object> extends DecisionNotifier<Native> {
  readonly #onSkip: JoinedObservers<Native>['onSkip']

  constructor(observers: JoinedObservers<Native>, store: Store) {
    super(observers, store)
    this.#onSkip = observers.onSkip
  }

  notifyDecision({ context, decision, checks, timing }: Found<Native>, isQueued = false): void {
    if (!this.isObserved) return
    const { native: request } = context
    const { method } = context.request
    const route = routeOf(context.request)
    this.notify({ request, route, method, decision, checks, timing, isQueued })
  }

  notifySkip({ native, request }: RequestContext<Native>, reason: SkipEvent['reason']): void {
    if (!this.#onSkip) return
    const { method } = request
    notify(this.#onSkip, { request: native, route: routeOf(request), method, reason })
  }
}

/** The methods that the name of a route may have: clients can make up others. */
const toldMethods: ReadonlySet<string> = new Set(
  'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT QUERY'.split(' '),
)

/** The most patterns whose names are kept, should an application make patterns up. */
const maxPatterns = 1_000
/** Names of routes by pattern and method: texts that are there already save 0.2 µs a request. */
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
