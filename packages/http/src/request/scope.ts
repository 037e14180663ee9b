import { fnv1a, processWide } from '@sluice/core'
import type { HttpRequest } from './exchange.ts'

/**
 * The place of a limiter, so that a private policy counts apart in every place: a router's prefix,
 * or method and route pattern. Never text that a client can vary. '' stands for the whole
 * application.
 */
export type Scope = string

/** The scope of a route: HEAD counts as GET, and a route that answers every method is one place. */
export function routeScope(method: string | undefined, pattern: string): Scope {
  if (method === undefined) return pattern
  return `${method === 'HEAD' ? 'GET' : method} ${pattern}`
}

/** The route that the framework matched, or its rule in `routes`; `undefined` before both. */
export function matchedRoute({ method, route, rule }: HttpRequest): Scope | undefined {
  return route === undefined ? rule : routeScope(method, route)
}

/** Injective: keys of users never begin with one `@`, and a scope ends where its length says. */
export function scopedKey(scope: Scope, key: string): string {
  return scope === '' ? key : `@scope/${scope.length}/${scope}/${key}`
}

/** The key as its resolver found it, of one that `scopedKey` made; any other is returned. */
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
 * `default-GET-search-q`. Two scopes never get one name. Scopes are as many as routes; should a
 * caller make them up as it goes, the names begin anew.
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
