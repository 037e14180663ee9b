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
  /** The body as a stream. */
  readonly stream: Readable
}
