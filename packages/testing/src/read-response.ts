import { invalid } from '@sluice/core'

/** The parts of a response that expectations read, from any library. */
export interface ReadResponse {
  readonly status: number
  /** The lines of each field, by lower-case name. */
  readonly fields: ReadonlyMap<string, string>
  /** The text of the body; `undefined` if it has been read, or is a stream. */
  readonly body: string | undefined
}

/**
 * Decodes a response of fetch, Node, supertest, light-my-request, axios or undici.
 * @param expectation the function that was called, for the message about another value
 */
export async function readResponse(response: unknown, expectation: string): Promise<ReadResponse> {
  const status = partOf(response, 'status') ?? partOf(response, 'statusCode')
  const headers = partOf(response, 'headers')
  if (typeof status !== 'number' || typeof headers !== 'object' || headers === null) {
    const legal = 'a response with status or statusCode, and headers; await it first'
    throw invalid({ option: `the argument of ${expectation}` }, response, legal)
  }
  return { status, fields: fieldsOf(headers), body: await bodyOf(response) }
}

function partOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

function fieldsOf(headers: object): ReadonlyMap<string, string> {
  const entries = isIterable(headers) ? [...headers] : Object.entries(headers)
  return new Map(
    entries
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name.toLowerCase(), [value].flat().join(', ')]),
  )
}

/** `Headers` of fetch and axios can list their fields. */
function isIterable(headers: object): headers is Iterable<[string, unknown]> {
  return Symbol.iterator in headers
}

/** Returns an existing body text, or a copy of an unread fetch body. */
async function bodyOf(response: unknown): Promise<string | undefined> {
  if (isOfFetch(response)) return response.bodyUsed ? undefined : await response.clone().text()
  for (const name of ['text', 'body', 'payload', 'data']) {
    const part = partOf(response, name)
    if (typeof part === 'string') return part
  }
  const data = partOf(response, 'data')
  return typeof data === 'object' && data !== null ? JSON.stringify(data) : undefined
}

/** Libraries have their own `Response`, so `instanceof` would miss some. */
function isOfFetch(response: unknown): response is Response {
  return typeof partOf(response, 'clone') === 'function'
}
