import type * as Http from 'node:http'
import { errorText, quote, SluiceError } from '@sluice/core'
import findMyWay from 'find-my-way'
import {
  type RoutePattern,
  type Router,
  type RouteTable,
  type Routing,
  undecoded,
} from './router.ts'

type Matcher = ReturnType<typeof findMyWay>
type Method = Parameters<Matcher['findRoute']>[0]

let http: typeof Http | undefined

/** Loads `node:http` on first use: with an import, Node 24 loads undici too (30 ms of CPU). */
export function nodeHttp(): typeof Http {
  http ??= globalThis.process.getBuiltinModule('node:http')
  return http
}

/** The methods that find-my-way supports, determined on first use. */
let known: ReadonlySet<string> | undefined

function routable(): ReadonlySet<string> {
  if (known) return known
  const router = findMyWay()
  // It has a shorthand for each, such as `router.get`.
  known = new Set(nodeHttp().METHODS.filter((method) => method.toLowerCase() in router))
  return known
}

/** Placeholder for methods that find-my-way does not support, on routes without a method. */
const anyMethod: Method = 'GET'

interface Entry<Value> {
  readonly text: string
  readonly value: Value
}

/** The router of frameworks on Node. */
export const nodeRouter: Router = { patternOf: routePattern, createTable }

function createTable<Value>(
  entries: ReadonlyMap<string, Value>,
  routing: Routing,
): RouteTable<Value> {
  if (entries.size === 0) return { find: () => undefined }
  const { prefix = '', lenient = false } = routing
  const byMethod = createRouter(routing)
  const byPath = createRouter(routing)
  const patterns = [...entries].map(([text, value]) => {
    const { method, path } = routePattern(text)
    return { method, paths: fullPaths(path, prefix, lenient), entry: { text, value } }
  })
  for (const { method, paths, entry } of patterns) {
    for (const path of paths) {
      if (method === undefined) add(byPath, { method: anyMethod, path }, entry)
      else if (isKnown(method)) add(byMethod, { method, path }, entry)
      else {
        const reason = `this version of find-my-way does not know the method ${method}`
        throw notRoute(entry.text, reason)
      }
    }
  }
  // A route without a method applies to all methods without their own route.
  for (const { method, paths, entry } of patterns) {
    if (method === undefined) for (const path of paths) addToRest(byMethod, path, entry)
  }

  function entryAt(method: string, path: string): Entry<Value> | undefined {
    const found = isKnown(method) ? byMethod.find(method, path) : byPath.find(anyMethod, path)
    return found?.store
  }

  /** Returns a path that cannot be decoded unchanged. */
  function find(method: string, path: string): Entry<Value> | undefined {
    return (
      entryAt(method, path) ?? (path.includes('%') ? entryAt(method, undecoded(path)) : undefined)
    )
  }

  /**
   * The path as it was sent comes first: `/users/%6de` is a user even if `/users/me` has its own
   * rule. A trailing slash may mean nothing, or begin the empty rest of a wildcard.
   */
  function findLeniently(method: string, sent: string): Entry<Value> | undefined {
    const path = sent.toLowerCase()
    return (
      entryAt(method, undecoded(path)) ??
      (path.endsWith('/') ? entryAt(method, `${undecoded(path)}*`) : undefined) ??
      (path.includes('%') ? entryAt(method, path) : undefined)
    )
  }

  const look = lenient ? findLeniently : find
  return { find: (method, path) => look(method === 'HEAD' ? 'GET' : method, path)?.value }
}

interface Route {
  readonly method: Method
  readonly path: string
}

function add<Value>(router: Matcher, { method, path }: Route, entry: Entry<Value>): void {
  try {
    router.on(method, path, noHandler, entry)
  } catch (error) {
    if (!isDuplicate(error)) throw notRoute(entry.text, errorText(error))
    const known = router.findRoute(method, path) ?? router.find(method, path)
    const other: Entry<Value> | undefined = known?.store
    // With and without a trailing slash, the root of a prefix may be one path.
    if (other === entry) return
    throw new SluiceError(
      'SLUICE_ROUTE_DUPLICATE',
      `routes: ${quote(entry.text)} matches the same requests as ${other ? quote(other.text) : 'another one'}; ` +
        `merge them, or give one of them a method`,
    )
  }
}

function addToRest<Value>(router: Matcher, path: string, entry: Entry<Value>): void {
  for (const method of routable()) {
    try {
      if (isKnown(method)) router.on(method, path, noHandler, entry)
    } catch (error) {
      if (!isDuplicate(error)) throw error
    }
  }
}

/** The root of a prefix is reachable with and without a slash. */
function fullPaths(path: string, prefix: string, lenient: boolean): readonly string[] {
  const before = prefix.replace(/\/$/, '')
  if (lenient) return [lowerCase(path)]
  if (before === '') return [path]
  return path === '/' ? [before, `${before}/`] : [before + (path === '*' ? '/*' : path)]
}

/** No maximum length: if the framework has one, longer paths match no route anyway. */
function createRouter({
  caseSensitive = true,
  ignoreTrailingSlash = false,
  ignoreDuplicateSlashes = false,
  useSemicolonDelimiter = false,
}: Routing): Matcher {
  const spellings = { caseSensitive, ignoreTrailingSlash, ignoreDuplicateSlashes }
  const bounds = { useSemicolonDelimiter, maxParamLength: Number.MAX_SAFE_INTEGER }
  return findMyWay({ ...spellings, ...bounds, querystringParser: noHandler })
}

/** Classes in a parameter's regular expression, such as `\D`, change meaning in lower case. */
function lowerCase(pattern: string): string {
  return pattern.replace(/\\.|[^\\]+/g, (part) => (part[0] === '\\' ? part : part.toLowerCase()))
}

function noHandler(): void {
  // find-my-way requires a handler; only the store is used.
}

function isKnown(method: string): method is Method {
  return routable().has(method)
}

function isDuplicate(error: unknown): boolean {
  return error instanceof Error && error.message.includes('already declared')
}

function notRoute(text: string, reason: string): SluiceError {
  return new SluiceError('SLUICE_ROUTE_INVALID', `routes: ${quote(text)} is not a route: ${reason}`)
}

const shape = /^(?:(\S+)\s+)?(\/\S*|\*)$/

/** Parses a key of `routes`, such as `POST /login`. @throws SluiceError if it is invalid */
function routePattern(text: string): RoutePattern {
  const [, method, path = ''] = shape.exec(text) ?? []
  if (path === '') {
    throw notRoute(text, `it must be a path, or a method and a path: '/health', 'POST /login'`)
  }
  const { METHODS } = nodeHttp()
  if (method !== undefined && !METHODS.includes(method)) {
    const meant = METHODS.includes(method.toUpperCase()) ? `write ${method.toUpperCase()}` : ''
    throw notRoute(text, `${quote(method)} is not an HTTP method${meant ? `; ${meant}` : ''}`)
  }
  if (method === 'HEAD') throw notRoute(text, 'HEAD counts as GET; write GET')
  if (/[{}\\]/.test(path.replace(/\(.*\)/, ''))) {
    throw notRoute(
      text,
      `a path may have parameters (/users/:id), an optional last one (/users/:id?), and a wildcard at its end (/files/*)`,
    )
  }
  return { method, path }
}
