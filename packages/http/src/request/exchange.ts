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

/** All that Sluice needs of a response, whatever the framework. Names are in any case. */
export interface HttpResponse {
  /** Returns whether the head is on its way, so that no field can be set any more. */
  readonly headersSent: boolean
  /** Names of the fields that are set, in lower case. */
  getHeaderNames(): readonly string[]
  getHeader(name: string): number | string | readonly string[] | undefined
  setHeader(name: string, value: string): void
  removeHeader(name: string): void
}

/** A field of the response as it shall be; `undefined`: not there at all. */
export type ResponseField = readonly [name: string, value: string | undefined]

/** The body that a client reads. */
export interface ResponseBody {
  readonly contentType: string
  readonly text: string
}

/** Sets the fields of a verdict, unless the head is sent: they must not become trailers. */
export function setFields(response: HttpResponse, fields: readonly ResponseField[]): void {
  if (response.headersSent) return
  for (const [name, value] of fields) {
    if (value === undefined) response.removeHeader(name)
    else response.setHeader(name, value)
  }
}

/** The lines that a field has on the response so far. */
export function fieldLines(response: HttpResponse, name: string): readonly string[] {
  const value = response.getHeader(name)
  if (value === undefined) return []
  return typeof value === 'object' ? value : [String(value)]
}

/** Other names of headers: the authority of HTTP/2 is the Host, and Referer has two spellings. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['host', ':authority'],
  ['referer', 'referrer'],
  ['referrer', 'referer'],
])

/** The value of a request header in Node's record of headers, which lists some names as arrays. */
export function headerOf(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  name: string,
): string | undefined {
  const value = headers[name] ?? headers[otherNames.get(name) ?? name]
  return Array.isArray(value) ? value.join(', ') : value
}
