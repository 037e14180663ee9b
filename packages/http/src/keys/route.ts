import { routeScope } from '../scope.ts'
import { defineKey, type KeyResolver } from './key-resolver.ts'

/**
 * The matched route: its pattern and the method (HEAD as GET), never the path as it was sent, of which there are as many as
 * somebody likes. Where nothing is matched all requests share one key.
 */
export function route(): KeyResolver<unknown> {
  return defineKey((_native, { method, route: pattern }) => {
    return `@route/${pattern === undefined ? 'unmatched' : routeScope(method, pattern)}`
  })
}
