import { matchedRoute } from '../request/scope.ts'
import { identityText } from './headers.ts'
import { defineIdentity, type IdentityResolver } from './resolver.ts'

/**
 * The matched route: its pattern and the method (HEAD as GET). It is never the path as it was sent,
 * since a client can make up any number of paths. Before the framework has matched a route, it is
 * the rule in `routes` that applies; where there is none either, all requests share one key.
 * `route().keyOf('GET /users/:id')` is the key of one.
 */
export function route(): IdentityResolver<unknown> {
  return defineIdentity(
    (_native: unknown, request) => tag + (matchedRoute(request) ?? 'unmatched'),
    (matched: string) => tag + identityText(matched, 'route().keyOf(route)'),
    'route',
  )
}

const tag = '@route/'
