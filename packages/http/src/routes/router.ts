// The port of routers. Matching: node-router.ts.

/** A framework's way to match paths, in the words of find-my-way. */
export interface Routing {
  readonly caseSensitive: boolean
  readonly ignoreTrailingSlash: boolean
  readonly ignoreDuplicateSlashes: boolean
  /**
   * Set for routers with unknown settings that match paths as they were sent, without decoding. A
   * value is then found if any such router would find it.
   * @default false
   */
  readonly lenient?: boolean
  /** Returns whether a semicolon begins the query too. @default false */
  readonly useSemicolonDelimiter?: boolean
  /** Text before every path, such as the prefix of a plugin. @default '' */
  readonly prefix?: string
}

/**
 * Routing for adapters that cannot see how the router behind them treats case and slashes. Rules
 * match as the laxest router would: over-matching limits a request that finds nothing,
 * under-matching would be a bypass.
 */
export const laxRouting: Routing = {
  caseSensitive: false,
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: true,
  lenient: true,
}

/** A key of `routes`, taken apart. */
export interface RoutePattern {
  /** Upper case, GET for HEAD too; `undefined`: every method. */
  readonly method: string | undefined
  /** As find-my-way takes it: `/users/:id`, `/files/*`. */
  readonly path: string
}

/** Values by method and path pattern, found as the router of the framework would find them. */
export interface RouteTable<Value> {
  /** The value for a request; HEAD is GET. */
  find(method: string, path: string): Value | undefined
}

/** Reads the keys of `routes`, and matches requests. An adapter passes it in: it needs Node. */
export interface Router {
  /** Reads a key of `routes`, such as `POST /login`. @throws SluiceError when it is none */
  patternOf(text: string): RoutePattern
  /**
   * Makes a table.
   * @param entries by text such as `POST /login`
   * @throws SluiceError when a text is no route, or two of them match alike
   */
  createTable<Value>(entries: ReadonlyMap<string, Value>, routing: Routing): RouteTable<Value>
}

/** The path that a router decodes to this path, as it is. */
export function undecoded(path: string): string {
  return path.replaceAll('%', '%25')
}
