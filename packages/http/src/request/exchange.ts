import type { Readable } from 'node:stream'

/** All that Sluice needs to know about a request, in any framework. */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string
  /** The path as it was sent, without the query: for `routes`, never for keys. */
  readonly path: string
  /** The pattern that the router matched, such as `/users/:id`; `undefined` before any match. */
  readonly route: string | undefined
  /** The client's address, according to the framework's proxy settings. */
  readonly ip: string | undefined
  /** The value of a request header by its lower-case name. */
  header(name: string): string | undefined
  /**
   * True if a request without an address has no key either, since the application passes the
   * address and may have forgotten it.
   * @default false: such requests, as on a Unix socket, share one key
   */
  readonly needsAddress?: boolean
  /** For admission; `undefined` if the adapter cannot provide it. */
  readonly content?: RequestContent | undefined
  /** Method and path pattern of the rule in `routes` that applies, once one does. */
  rule?: string
}

/** Returns whether a request looks like a CORS preflight. Any client can send that shape. */
export function isPreflight(request: HttpRequest): boolean {
  return (
    request.method === 'OPTIONS' &&
    request.header('origin') !== undefined &&
    request.header('access-control-request-method') !== undefined
  )
}

/** The content of a request, for admission. Not every adapter can provide it. */
export interface RequestContent {
  /** The URL as it was sent, with the query. */
  readonly url: string
  /** The body from a body parser, if one has run. */
  readonly parsed: unknown
  /** The body as a stream of Node, or a function that returns its chunks. */
  readonly stream: Readable | (() => AsyncIterable<Uint8Array> | readonly Uint8Array[])
}

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

/** All that Sluice needs of a response, in any framework. Names are case-insensitive. */
export interface HttpResponse {
  /** True once the head was sent: no more fields can be set. */
  readonly headersSent: boolean
  /** Names of the fields set so far, in lower case. */
  getHeaderNames(): readonly string[]
  getHeader(name: string): number | string | readonly string[] | undefined
  setHeader(name: string, value: string): void
  removeHeader(name: string): void
}

/** A field to set on the response; `undefined` to remove it. */
export type ResponseField = readonly [name: string, value: string | undefined]

/** The body sent to the client. */
export interface ResponseBody {
  readonly contentType: string
  readonly text: string
}

/** Sets the fields of a verdict, unless the head was sent: they must not become trailers. */
export function setFields(response: HttpResponse, fields: readonly ResponseField[]): void {
  if (response.headersSent) return
  for (const [name, value] of fields) {
    if (value === undefined) response.removeHeader(name)
    else response.setHeader(name, value)
  }
}

/** Returns the lines that a field has on the response so far. */
export function fieldLines(response: HttpResponse, name: string): readonly string[] {
  const value = response.getHeader(name)
  if (value === undefined) return []
  return typeof value === 'object' ? value : [String(value)]
}

/** Aliases of headers: HTTP/2 sends Host as `:authority`, and Referer has two spellings. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['host', ':authority'],
  ['referer', 'referrer'],
  ['referrer', 'referer'],
])

/** Returns a request header from Node's headers object, in which some values are arrays. */
export function headerOf(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  name: string,
): string | undefined {
  const value = headers[name] ?? headers[otherNames.get(name) ?? name]
  return Array.isArray(value) ? value.join(', ') : value
}
