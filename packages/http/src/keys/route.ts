import { matchedRoute } from '../request/exchange.ts'
import { identityText } from './headers.ts'
import { defineIdentity, type IdentityResolver } from './resolver.ts'

/**
 * The matched route: its pattern and the method (HEAD as GET), never the raw path, since a client
 * can make up any number of paths. If the framework has not matched a route yet, the rule in
 * `routes` that applies is used. Without a rule, all requests share one key. `route().keyOf('GET
 * /users/:id')` returns the key of a route.
 */
export function route(): IdentityResolver<unknown> {
  return defineIdentity(
    (_native: unknown, request) => tag + (matchedRoute(request) ?? 'unmatched'),
    (matched: string) => tag + identityText(matched, 'route().keyOf(route)'),
    'route',
  )
}

const tag = '@route/'
