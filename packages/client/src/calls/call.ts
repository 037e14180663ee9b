/**
 * Path segments with a digit that are not ids: versions (`v2`, `v1.1`, `v1beta1`), and a few
 * letters with one or two digits (`s3`, `ec2`, `oauth2`, `k8s`, `2fa`).
 */
const fixed = /^(v\d+(\.\d+)*([a-z]+\d*)?|\d?[a-z]{1,8}\d{0,2}[a-z]?)$/i

/** Returns method and path, without ids: `/users/42` and `/users/43` are one route. */
export function routeOf({ method, url }: CallInfo): string {
  const parts = url.pathname.split('/')
  const names = parts.map((part) => (/\d/.test(part) && !fixed.test(part) ? ':' : part))
  return `${method} ${names.join('/')}`
}

/** A call before it is sent. */
export interface CallInfo {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
}

/** Returns the key of a call. */
export type KeyFunction = (call: CallInfo) => string | undefined

export interface Call extends CallInfo {
  readonly signal: AbortSignal | undefined
  /** True if the body, if there is one, can be sent more than once. */
  readonly hasRepeatableBody: boolean
  /** Returns the arguments of `fetch` for one request; `mayFollow`: another one may follow it. */
  argumentsFor(mayFollow: { mayFollow: boolean }): Parameters<Fetch>
}

/** The type of the global `fetch`. */
export type Fetch = typeof globalThis.fetch

type Input = Parameters<Fetch>[0]

/** Reads the arguments of `fetch`. Throws what `fetch` would reject with. */
export function readCall(input: Input, given: RequestInit | undefined): Call {
  const init = withLastingHeaders(given)
  const request = isRequest(input) ? input : undefined
  // Firefox does not expose whether a Request has a body. A used one had a body.
  const isBodyOfRequest = (init?.body ?? undefined) === undefined && request?.body !== null
  if (isBodyOfRequest && request?.bodyUsed) {
    throw new TypeError('fetch: the body of the Request was sent or read before')
  }
  // Request resolves `/path` against the page, rejects it in Node, and validates the rest.
  const { url, method, headers } = new Request(request?.url ?? String(input), {
    method: init?.method ?? request?.method ?? 'GET',
    headers: init?.headers ?? request?.headers ?? [],
  })
  return {
    url: new URL(url),
    method,
    headers,
    signal: init?.signal ?? request?.signal ?? undefined,
    hasRepeatableBody: isRepeatable(init?.body, method),
    // Sending a Request consumes its body, so all requests but the last one send a copy.
    argumentsFor: ({ mayFollow }) => [
      mayFollow && isBodyOfRequest && request !== undefined && mayHaveBody(method)
        ? request.clone()
        : input,
      init,
    ],
  }
}

/** Copies headers that can be read only once, such as the entries of a Map. */
function withLastingHeaders(init: RequestInit | undefined): RequestInit | undefined {
  const headers = init?.headers
  const isIterator = headers !== undefined && Symbol.iterator in headers && 'next' in headers
  return isIterator ? { ...init, headers: [...headers] } : init
}

function isRequest(input: Input): input is Request {
  return typeof input === 'object' && 'url' in input
}

function mayHaveBody(method: string): boolean {
  return method !== 'GET' && method !== 'HEAD'
}

/** Returns whether a body can be sent again. A stream can be read only once. */
function isRepeatable(body: unknown, method: string): boolean {
  if (body === undefined || body === null) return true
  // A body is the caller's mistake here, and would fail again.
  if (!mayHaveBody(method)) return false
  if (typeof body !== 'object') return true
  // Node's fetch streams any async iterable, node-fetch any object with `pipe`.
  return !(body instanceof ReadableStream || Symbol.asyncIterator in body || 'pipe' in body)
}

/** Returns whether a call has an `Idempotency-Key`. An empty one would be equal for all calls. */
export function hasIdempotencyKey({ headers }: Call): boolean {
  return /[^\s"]/.test(headers.get('Idempotency-Key') ?? '')
}
