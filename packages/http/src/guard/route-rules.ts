import { invalid, isOptions, SluiceError } from '@sluice/core'
import type { Routes } from '../options/options.ts'
import type { HttpRequest } from '../request/request.ts'
import { routeScope, type Scope } from '../request/scope.ts'
import { type Router, type RouteTable, type Routing, undecoded } from '../routes/router.ts'
import type { PolicyGuard } from '../stages/stages.ts'
import type { RouteGuards } from './route-guards.ts'

/** The limits for the requests of one route. */
export interface RouteRule<Native extends object, Handler> {
  readonly scope: Scope
  /** `false`: nothing. */
  readonly guard: PolicyGuard<Native, Handler> | false
}

/** The rules of `routes`, each with its guard. */
export class RouteRules<Native extends object, Handler> {
  readonly hidesOnRedirect: boolean
  readonly #table: RouteTable<RouteRule<Native, Handler>>
  readonly #limits: RouteTable<RouteRule<Native, Handler>>
  /** Finds only what is written, where the others are lenient. */
  readonly #exactTable: RouteTable<RouteRule<Native, Handler>> | undefined

  /** @throws SluiceError that names the route, when it is none, or its limits are wrong */
  constructor(
    routes: Routes<Native, Handler>,
    guards: RouteGuards<Native, Handler>,
    { router, routing }: { readonly router: Router | undefined; readonly routing: Routing },
  ) {
    if (!router) {
      throw new SluiceError(
        'SLUICE_OPTION_INVALID',
        "routes needs the option router: import { nodeRouter } from '@sluice/http/adapter', and pass router: nodeRouter",
      )
    }
    if (!isOptions(routes)) {
      throw invalid(
        { option: 'routes' },
        routes,
        `a plain object, as in { 'POST /login': { limit: 5, window: '1m' } }`,
      )
    }
    const rules = new Map<string, RouteRule<Native, Handler>>()
    for (const [text, override] of Object.entries(routes)) {
      const { method, path } = router.patternOf(text)
      const scope = routeScope(method, `${routing.prefix ?? ''}${path}`)
      const where = `routes['${text}']`
      const guard = override === false ? false : guards.create(override, { where, scope })
      rules.set(text, { scope, guard })
    }
    this.#table = router.createTable(rules, routing)
    this.#limits = router.createTable(
      new Map([...rules].filter(([, { guard }]) => guard !== false)),
      routing,
    )
    this.#exactTable = routing.lenient ? router.createTable(rules, exactly) : undefined
    this.hidesOnRedirect = [...rules.values()].some(
      ({ guard }) => guard !== false && guard.hidesOnRedirect,
    )
  }

  /** The rule of a request, which its key resolvers see too; `undefined` for none. */
  find(request: HttpRequest): RouteRule<Native, Handler> | undefined {
    const rule = this.#find(request)
    if (rule) request.rule = rule.scope
    return rule
  }

  /**
   * For a rule with limits, over-matching only limits a request that finds nothing. For a rule
   * without limits, over-matching would be a bypass of other limits. So `false` matches the written
   * path, and nothing else.
   */
  #find({ method, path }: HttpRequest): RouteRule<Native, Handler> | undefined {
    const rule = this.#table.find(method, path)
    if (rule?.guard !== false) return rule
    const isWritten = !this.#exactTable || this.#exactTable.find(method, undecoded(path)) === rule
    // Another server that gets a path with dot segments may resolve them.
    return isWritten && !dotSegment.test(path) ? rule : this.#limits.find(method, path)
  }
}

const exactly: Routing = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
}

const dotSegment = /(?:[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:[/\\?#;]|%2f|%5c|$)/i
