import { invalid, isOptions, SluiceError } from '@sluice/core'
import type { Routes } from '../options/options.ts'
import type { HttpRequest } from '../request/exchange.ts'
import { routeScope, type Scope } from '../request/exchange.ts'
import { type Router, type Routing, undecoded } from '../routes/router.ts'
import type { PolicyGuard } from '../stages/stages.ts'
import type { routeGuards } from './route-guards.ts'

interface RouteRule<Native extends object, Handler> {
  readonly scope: Scope
  /** `false`: nothing. */
  readonly guard: PolicyGuard<Native, Handler> | false
}

export interface RouteRules<Native extends object, Handler> {
  readonly hidesOnRedirect: boolean
  /** Returns the rule of a request, which key resolvers see too; `undefined` if there is none. */
  find(request: HttpRequest): RouteRule<Native, Handler> | undefined
}

/**
 * Creates the rules of `routes`.
 * @throws SluiceError that names the route, if it is invalid or its limits are wrong
 */
export function routeRules<Native extends object, Handler>(
  routes: Routes<Native, Handler>,
  guardOf: ReturnType<typeof routeGuards<Native, Handler>>,
  { router, routing }: { readonly router: Router | undefined; readonly routing: Routing },
): RouteRules<Native, Handler> {
  if (!router) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      "routes needs the option router: import { nodeRouter } from '@sluice/http/adapter', and pass router: nodeRouter",
    )
  }
  if (!isOptions(routes)) {
    const legal = `a plain object, as in { 'POST /login': { limit: 5, window: '1m' } }`
    throw invalid({ option: 'routes' }, routes, legal)
  }
  const rules = new Map<string, RouteRule<Native, Handler>>()
  for (const [text, override] of Object.entries(routes)) {
    const { method, path } = router.patternOf(text)
    const scope = routeScope(method, `${routing.prefix ?? ''}${path}`)
    const where = `routes['${text}']`
    rules.set(text, { scope, guard: override !== false && guardOf(override, { where, scope }) })
  }
  const limiting = [...rules].filter(([, { guard }]) => guard !== false)
  const table = router.createTable(rules, routing)
  const limits = router.createTable(new Map(limiting), routing)
  /** Matches only the exact spelling; the other routers are lenient. */
  const exactTable = routing.lenient ? router.createTable(rules, {}) : undefined

  /**
   * For a rule with limits, over-matching only limits a request that leads to a 404. For a rule
   * without limits, over-matching would bypass other limits. So `false` matches the path exactly as
   * written.
   */
  function ruleOf({ method, path }: HttpRequest): RouteRule<Native, Handler> | undefined {
    const rule = table.find(method, path)
    if (rule?.guard !== false) return rule
    const isWritten = !exactTable || exactTable.find(method, undecoded(path)) === rule
    // Another server that receives dot segments may resolve them.
    return isWritten && !dotSegment.test(path) ? rule : limits.find(method, path)
  }

  return {
    hidesOnRedirect: limiting.some(([, { guard }]) => guard !== false && guard.hidesOnRedirect),
    find(request) {
      const rule = ruleOf(request)
      if (rule) request.rule = rule.scope
      return rule
    },
  }
}

const dotSegment = /(?:[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:[/\\?#;]|%2f|%5c|$)/i
