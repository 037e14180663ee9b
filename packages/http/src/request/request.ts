import type { Readable } from 'node:stream'

/** All that Sluice needs to know of a request, whatever the framework. */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string
  /** The path as it was sent, without the query: for `routes`, never for keys. */
  readonly path: string
  /** The pattern that the router matched, such as `/users/:id`; `undefined` before any match. */
  readonly route: string | undefined
  /** The client's address as the framework's own proxy settings give it. */
  readonly ip: string | undefined
  /** The value of a request header by its lower-case name. */
  header(name: string): string | undefined
  /**
   * Returns whether a request without an address has no key either, since the application gives the
   * address, and may have forgotten it.
   * @default false: such requests, as those of a socket file, share one key
   */
  readonly needsAddress?: boolean
  /** For admission; `undefined` where the adapter cannot show it. */
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

/** The content of a request, for admission. Not every adapter can show it. */
export interface RequestContent {
  /** As it was sent, with the query. */
  readonly url: string
  /** The body as a body parser left it, if one has run. */
  readonly parsed: unknown
  /** The body as it comes. */
  readonly stream: Readable
}
