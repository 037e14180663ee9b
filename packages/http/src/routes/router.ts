// The router port. For the matching see node-router.ts.

/** A framework's path matching, in find-my-way's terms and with its defaults. */
export interface Routing {
  readonly caseSensitive?: boolean
  readonly ignoreTrailingSlash?: boolean
  readonly ignoreDuplicateSlashes?: boolean
  /**
   * Set for routers with unknown settings that match paths as sent, without decoding. A value is
   * then found if any of these routers would find it.
   * @default false
   */
  readonly lenient?: boolean
  /** True if a semicolon starts the query too. @default false */
  readonly useSemicolonDelimiter?: boolean
  /** Prefix of every path, such as a plugin's. @default '' */
  readonly prefix?: string
}

/**
 * Routing for adapters that cannot see how the router behind them treats case and slashes. Rules
 * match as the laxest router would: over-matching only limits requests that lead to a 404,
 * under-matching would be a bypass.
 */
export const laxRouting: Routing = {
  caseSensitive: false,
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: true,
  lenient: true,
}

/** A parsed key of `routes`. */
export interface RoutePattern {
  /** Upper case, GET for HEAD too; `undefined` for every method. */
  readonly method: string | undefined
  /** In find-my-way's syntax: `/users/:id`, `/files/*`. */
  readonly path: string
}

/** Values by method and path pattern, matched like the framework's router. */
export interface RouteTable<Value> {
  /** Returns the value for a request; HEAD counts as GET. */
  find(method: string, path: string): Value | undefined
}

/** Parses the keys of `routes` and matches requests. Adapters pass it in, since it needs Node. */
export interface Router {
  /** Parses a key of `routes`, such as `POST /login`. @throws SluiceError if it is invalid */
  patternOf(text: string): RoutePattern
  /**
   * Creates a table.
   * @param entries by keys such as `POST /login`
   * @throws SluiceError if a key is not a route, or two keys match the same requests
   */
  createTable<Value>(entries: ReadonlyMap<string, Value>, routing: Routing): RouteTable<Value>
}

/** Returns a raw path that a router decodes to this path. */
export function undecoded(path: string): string {
  return path.replaceAll('%', '%25')
}
