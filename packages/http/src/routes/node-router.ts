import { METHODS } from 'node:http'
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

/** The methods that find-my-way knows, found out when they are needed first. */
let known: ReadonlySet<string> | undefined

function routable(): ReadonlySet<string> {
  known ??= new Set(METHODS.filter(isRoutable))
  return known
}

/** The method of routes without one, for methods that find-my-way does not know. */
const anyMethod: Method = 'GET'

interface Entry<Value> {
  readonly text: string
  readonly value: Value
}

/** The router of frameworks on Node. */
export const nodeRouter: Router = { patternOf: routePattern, createTable }

function createTable<Value>(
  entries: ReadonlyMap<string, Value>,
  { prefix = '', lenient = false, ...routing }: Routing,
): RouteTable<Value> {
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
  // A route without a method stands for all methods that have none of their own.
  for (const { method, paths, entry } of patterns) {
    if (method === undefined) for (const path of paths) addToRest(byMethod, path, entry)
  }

  function entryAt(method: string, path: string): Entry<Value> | undefined {
    const found = isKnown(method) ? byMethod.find(method, path) : byPath.find(anyMethod, path)
    return found?.store
  }

  /** A path that cannot be decoded is taken as it is. */
  function find(method: string, path: string): Entry<Value> | undefined {
    return (
      entryAt(method, path) ?? (path.includes('%') ? entryAt(method, undecoded(path)) : undefined)
    )
  }

  /**
   * The path as it was sent comes first: `/users/%6de` is a user, where `/users/me` has a rule of
   * its own. A slash at the end may stand for nothing, or begin the empty rest of a wildcard.
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
  const isEmpty = entries.size === 0
  return {
    find: (method, path) =>
      isEmpty ? undefined : look(method === 'HEAD' ? 'GET' : method, path)?.value,
  }
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
    // With and without a slash at its end, the root of a prefix may be one path.
    if (other === entry) return
    throw new SluiceError(
      'SLUICE_ROUTE_DUPLICATE',
      `routes: ${quote(entry.text)} matches the same requests as ${other ? quote(other.text) : 'another one'}; ` +
        `join the two, or give one of them a method`,
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

/** The root of a prefix is reached with and without a slash. */
function fullPaths(path: string, prefix: string, lenient: boolean): readonly string[] {
  const before = prefix.replace(/\/$/, '')
  if (lenient) return [lowerCase(path)]
  if (before === '') return [path]
  return path === '/' ? [before, `${before}/`] : [before + (path === '*' ? '/*' : path)]
}

/** Parameters have no bound here: where the framework has one, it finds nothing for them anyway. */
function createRouter(routing: Omit<Routing, 'prefix' | 'lenient'>): Matcher {
  return findMyWay({ ...routing, maxParamLength: Number.MAX_SAFE_INTEGER })
}

/** Classes in the expression of a parameter, such as `\D`, mean something else in lower case. */
function lowerCase(pattern: string): string {
  return pattern.replace(/\\.|[^\\]+/g, (part) => (part[0] === '\\' ? part : part.toLowerCase()))
}

function noHandler(): void {
  // Only what stands beside it is looked up.
}

function isKnown(method: string): method is Method {
  return routable().has(method)
}

function isRoutable(method: string): boolean {
  try {
    findMyWay().on(method as Method, '/', noHandler)
    return true
  } catch {
    return false
  }
}

function isDuplicate(error: unknown): boolean {
  return error instanceof Error && error.message.includes('already declared')
}

function notRoute(text: string, reason: string): SluiceError {
  return new SluiceError('SLUICE_ROUTE_INVALID', `routes: ${quote(text)} is no route: ${reason}`)
}

const shape = /^(?:(\S+)\s+)?(\/\S*|\*)$/

/** Reads a key of `routes`, such as `POST /login`. @throws SluiceError when it is none */
function routePattern(text: string): RoutePattern {
  const [, method, path = ''] = shape.exec(text) ?? []
  if (path === '') {
    throw notRoute(text, `it must be a path, or a method and a path: '/health', 'POST /login'`)
  }
  if (method !== undefined && !METHODS.includes(method)) {
    const meant = METHODS.includes(method.toUpperCase()) ? `write ${method.toUpperCase()}` : ''
    throw notRoute(text, `${quote(method)} is no method of HTTP${meant ? `; ${meant}` : ''}`)
  }
  if (method === 'HEAD') throw notRoute(text, 'HEAD counts as GET; write GET')
  if (/[{}\\]/.test(path.replace(/\(.*\)/, ''))) {
    throw notRoute(
      text,
      `paths have parameters (/users/:id), optional ones last (/users/:id?), and a wildcard at their end (/files/*)`,
    )
  }
  return { method, path }
}
