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
