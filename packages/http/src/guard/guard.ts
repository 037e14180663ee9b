import { type CheckLimiter, memoryStore, type Store, unlimited, warnOnce } from '@sluice/core'
import { readList } from '../access/lists.ts'
import { bringsPolicies } from '../options/bound-policy.ts'
import type { GuardFields, RouteOverride } from '../options/options.ts'
import type { RequestContext } from '../request/context.ts'
import type { HttpRequest } from '../request/exchange.ts'
import { type Passage, passWithoutFields } from '../request/passage.ts'
import { policyCatalogue } from '../routes/catalogue.ts'
import type { Router, Routing } from '../routes/router.ts'
import type { PolicyGuardPlace } from '../stages/setup.ts'
import { createPolicyGuard, type PolicyGuard, passes } from '../stages/stages.ts'
import { routeGuards } from './route-guards.ts'
import { routeRules } from './route-rules.ts'

/** Limiter + key resolution + headers: takes an HTTP request, returns a passage. */
export interface Guard<Native extends object, Handler = never>
  extends PolicyGuard<Native, Handler> {
  readonly limiter: CheckLimiter
  /** Number of requests delayed now, except on routes with their own `maxWaiting`. */
  readonly waiting: number
  /** Lets a request pass to which no limit applies, and reports it to observers as skipped. */
  pass(context: RequestContext<Native>): Passage<Handler>
  /**
   * Returns the guard of a route with its own limits, created once per override. Options that the
   * override omits come from this guard. `false`: no limits.
   * @param where what the user calls the override, for messages
   * @throws SluiceError if one of its options is unknown, missing or out of range
   */
  ofRoute(
    override: RouteOverride<Native, Handler> | string | false,
    where: string,
  ): PolicyGuard<Native, Handler>
  /** Creates a guard as for a route, to be mounted in addition to this one. */
  derive(
    override: RouteOverride<Native, Handler> | string,
    where: string,
  ): PolicyGuard<Native, Handler>
}

/** An adapter's settings for a guard, in addition to the user's options. */
export interface GuardPlace
  extends Pick<PolicyGuardPlace<never>, 'where' | 'adapterFields' | 'scope'> {
  /** The framework's path matching, for `routes`. */
  readonly routing: Routing
  /** The router for `routes`. @default none: `routes` cannot be used */
  readonly router?: Router | undefined
  /** True if requests that match no rule of `routes` are limited. @default true */
  readonly isGlobal?: boolean
}

/** Creates a guard with fixed policies. @throws SluiceError if an option is wrong */
export function createFixedGuard<Native extends object, Handler = never>(
  options: GuardFields<Native, Handler>,
  { routing, router, scope, isGlobal = true, ...place }: GuardPlace,
): Guard<Native, Handler> {
  const { routes, profiles, ...own } = options
  const base = {
    ...own,
    allow: readList(own.allow, 'allow'),
    block: readList(own.block, 'block'),
    store: own.store === undefined ? storeOfProcess(place.where) : own.store,
  }
  const catalogue = policyCatalogue(base, profiles)
  const mayBeNone = !isGlobal || routes !== undefined || Boolean(own.penalty)
  const hasNone = mayBeNone && !bringsPolicies(base)
  const everywhere = createPolicyGuard<Native, Handler>(hasNone ? { ...base, ...nothing } : base, {
    ...place,
    checksAdmission: !hasNone,
  })
  const isApplied = isGlobal && !hasNone
  const isAsked = isApplied || (isGlobal && Boolean(own.penalty))
  const derive = routeGuards({ options: base, catalogue, guard: everywhere, scope, isApplied })
  const ofRoutes = new Map<unknown, PolicyGuard<Native, Handler>>()
  const rules = routes === undefined ? undefined : routeRules(routes, derive, { router, routing })
  const pass = (context: RequestContext<Native>): Passage<Handler> => {
    everywhere.setup.observation.notifySkip(context, 'route')
    return passWithoutFields
  }
  const none = { check: pass, peek: () => passes, hidesOnRedirect: false }
  const otherwise = isAsked ? everywhere : none
  const guardFor = (request: HttpRequest) => {
    const rule = rules?.find(request)
    return rule ? rule.guard || none : otherwise
  }

  return {
    limiter: everywhere.setup.limiter,
    hidesOnRedirect: everywhere.hidesOnRedirect || rules?.hidesOnRedirect === true,
    get waiting() {
      return everywhere.delayQueue.waiting
    },
    check: rules ? (context) => guardFor(context.request).check(context) : otherwise.check,
    peek: (asking) => guardFor(asking.request).peek(asking),
    pass,
    ofRoute(override, where) {
      if (override === false) return none
      const guard = ofRoutes.get(override) ?? derive(override, { where, identifiedByScope: true })
      ofRoutes.set(override, guard)
      return guard
    },
    derive: (override, where) => derive(override, { where, isBeside: true }),
  }
}

/** Warns in a runtime that is known to start many isolates, each with its own memory. */
function storeOfProcess(where: string): Store {
  const agent: unknown = Reflect.get(Object(Reflect.get(globalThis, 'navigator')), 'userAgent')
  if (agent === 'Cloudflare-Workers' || Reflect.has(globalThis, 'EdgeRuntime')) {
    warnOnce(
      `${where} counts in memory, and this runtime starts many isolates, of which each counts for itself: ` +
        `give ${where} a store that they share`,
    )
  }
  return memoryStore()
}

/** A policy that limits nothing, for a guard without policies. */
const nothing = { limit: unlimited, window: '1s' } as const
