import { matchedRoute } from '../routes/scope.ts'
import { defineKey, type KeyResolver } from './key-resolver.ts'

/**
 * The matched route: its pattern and the method (HEAD as GET), never the path as it was sent, of which there are as many as
 * somebody likes. Before the framework has matched a route, it is the rule in `routes` that applies; where there is none either, all
 * requests share one key.
 */
export function route(): KeyResolver<unknown> {
  return defineKey((_native, request) => `@route/${matchedRoute(request) ?? 'unmatched'}`)
}
