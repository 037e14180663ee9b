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
export const nodeRouter: Router = {
  patternOf: routePattern,
  createTable: (entries, routing) => new MatchingTable(entries, routing),
}

class MatchingTable<Value> implements RouteTable<Value> {
  readonly #byMethod: Matcher
  readonly #byPath: Matcher
  readonly #prefix: string
  readonly #isEmpty: boolean
  readonly #isLenient: boolean

  /**
   * @param entries by text such as `POST /login`
   * @throws SluiceError when a text is no route, or two of them match alike
   */
  constructor(
    entries: ReadonlyMap<string, Value>,
    { prefix = '', lenient = false, ...routing }: Routing,
  ) {
    this.#isEmpty = entries.size === 0
    this.#isLenient = lenient
    this.#byMethod = createRouter(routing)
    this.#byPath = createRouter(routing)
    this.#prefix = prefix
    const patterns = [...entries].map(([text, value]) => ({
      pattern: routePattern(text),
      entry: { text, value },
    }))
    for (const { pattern, entry } of patterns) {
      this.#add(pattern.method === undefined ? this.#byPath : this.#byMethod, pattern, entry)
    }
    // A route without a method stands for all methods that have none of their own.
    for (const { pattern, entry } of patterns) {
      if (pattern.method === undefined) this.#addToRest(pattern, entry)
    }
  }

  find(method: string, path: string): Value | undefined {
    if (this.#isEmpty) return undefined
    const asked = method === 'HEAD' ? 'GET' : method
    return (this.#isLenient ? this.#findLeniently(asked, path) : this.#find(asked, path))?.value
  }

  /** A path that cannot be decoded is taken as it is. */
  #find(method: string, path: string): Entry<Value> | undefined {
    return (
      this.#entry(method, path) ??
      (path.includes('%') ? this.#entry(method, undecoded(path)) : undefined)
    )
  }

  /**
   * The path as it was sent comes first: `/users/%6de` is a user, where `/users/me` has a rule of
   * its own. A slash at the end may stand for nothing, or begin the empty rest of a wildcard.
   */
  #findLeniently(method: string, sent: string): Entry<Value> | undefined {
    const path = sent.toLowerCase()
    return (
      this.#entry(method, undecoded(path)) ??
      (path.endsWith('/') ? this.#entry(method, `${undecoded(path)}*`) : undefined) ??
      (path.includes('%') ? this.#entry(method, path) : undefined)
    )
  }

  #entry(method: string, path: string): Entry<Value> | undefined {
    return isKnown(method)
      ? this.#byMethod.find(method, path)?.store
      : this.#byPath.find(anyMethod, path)?.store
  }

  #add(router: Matcher, { method = anyMethod, path }: RoutePattern, entry: Entry<Value>): void {
    if (!isKnown(method)) {
      throw notRoute(entry.text, `this version of find-my-way does not know the method ${method}`)
    }
    for (const full of this.#fullPaths(path)) {
      try {
        router.on(method, full, noHandler, entry)
      } catch (error) {
        if (!isDuplicate(error)) throw notRoute(entry.text, errorText(error))
        const other: Entry<Value> | undefined = (
          router.findRoute(method, full) ?? router.find(method, full)
        )?.store
        // With and without a slash at its end, the root of a prefix may be one path.
        if (other === entry) continue
        throw new SluiceError(
          'SLUICE_ROUTE_DUPLICATE',
          `routes: ${quote(entry.text)} matches the same requests as ${other ? quote(other.text) : 'another one'}; ` +
            `join the two, or give one of them a method`,
        )
      }
    }
  }

  #addToRest({ path }: RoutePattern, entry: Entry<Value>): void {
    for (const full of this.#fullPaths(path)) {
      for (const method of routable()) {
        try {
          if (isKnown(method)) this.#byMethod.on(method, full, noHandler, entry)
        } catch (error) {
          if (!isDuplicate(error)) throw error
        }
      }
    }
  }

  /** The root of a prefix is reached with and without a slash. */
  #fullPaths(path: string): readonly string[] {
    const prefix = this.#prefix.replace(/\/$/, '')
    if (this.#isLenient) return [lowerCase(path)]
    if (prefix === '') return [path]
    return path === '/' ? [prefix, `${prefix}/`] : [prefix + (path === '*' ? '/*' : path)]
  }
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
    // It says so of methods that it does not know.
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
