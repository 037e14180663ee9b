/** All that Sluice needs of a response, in any framework. Names are case-insensitive. */
export interface HttpResponse {
  /** True once the head was sent, so that no field can be set any more. */
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
