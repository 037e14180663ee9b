import type { HttpRequest } from '../http-request.ts'
import { defineKey, type KeyResolver } from './key-resolver.ts'

/**
 * The matched route: its pattern and the method, never the path as it was sent, of which there are as many as somebody likes.
 * Where nothing is matched all requests share one key.
 */
export function route(): KeyResolver<unknown> {
  return defineKey((_native, request) => `@route/${routeLabel(request) ?? 'unmatched'}`)
}

/** `GET /users/:id`; HEAD counts as GET. `undefined` where nothing is matched. */
export function routeLabel({ method, route: pattern }: HttpRequest): string | undefined {
  return pattern === undefined ? undefined : `${countedMethod(method)} ${pattern}`
}

/** A HEAD is a GET whose body is left out: it shares its quota. */
export function countedMethod(method: string): string {
  return method === 'HEAD' ? 'GET' : method
}
