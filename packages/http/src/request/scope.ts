import { fnv1a, processWide } from '@sluice/core'
import type { HttpRequest } from './exchange.ts'

/**
 * The place of a limiter, so that a private policy counts separately in each place: a router's
 * prefix, or method and route pattern. Never text that a client can vary. '' is the whole
 * application.
 */
export type Scope = string

/** The scope of a route: HEAD counts as GET, and a route for all methods is one place. */
export function routeScope(method: string | undefined, pattern: string): Scope {
  if (method === undefined) return pattern
  return `${method === 'HEAD' ? 'GET' : method} ${pattern}`
}

/** The route that the framework matched, or the rule in `routes`; `undefined` before both. */
export function matchedRoute({ method, route, rule }: HttpRequest): Scope | undefined {
  return route === undefined ? rule : routeScope(method, route)
}

/** Injective: user keys never begin with a single `@`, and the scope is preceded by its length. */
export function scopedKey(scope: Scope, key: string): string {
  return scope === '' ? key : `@scope/${scope.length}/${scope}/${key}`
}

/** Returns the original key from a `scopedKey`; any other key is returned unchanged. */
export function unscopedKey(key: string): string {
  const [head, length] = /^@scope\/(\d+)\//.exec(key) ?? []
  return head === undefined ? key : key.slice(head.length + Number(length) + 1)
}

const maxNameLength = 64
const maxNames = 1_000
const namesByScope = processWide('@sluice/http/scope-names/1', () => new Map<string, string>())
const takenNames = processWide('@sluice/http/taken-names/1', () => new Set<string>())

/**
 * Returns the name of a private policy in headers: `default` in `GET /search/:q` is
 * `default-GET-search-q`. Two scopes never get the same name. There are as many scopes as routes;
 * if a caller keeps inventing them, the names start over.
 */
export function scopedName(scope: Scope, name: string): string {
  if (scope === '') return name
  const place = `${name} ${scope}`
  const known = namesByScope.get(place)
  if (known !== undefined) return known
  if (namesByScope.size >= maxNames) {
    namesByScope.clear()
    takenNames.clear()
  }
  const derived = derivedName(name, scope)
  namesByScope.set(place, derived)
  takenNames.add(derived)
  return derived
}

function derivedName(name: string, scope: Scope): string {
  const readable = `${name}-${scope}`.replace(/[^A-Za-z0-9._]+/g, '-').replace(/-$/, '')
  if (readable.length <= maxNameLength && !takenNames.has(readable)) return readable
  const digest = fnv1a(scope).toString(36)
  return `${readable.slice(0, maxNameLength - digest.length - 1)}-${digest}`
}
