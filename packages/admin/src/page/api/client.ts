export class ApiError extends Error {
  readonly status: number
  readonly body: unknown

  constructor(status: number, message: string, body: unknown) {
    super(message)
    this.status = status
    this.body = body
  }
}

/** Indicates that no answer came: the server or the network is down. */
export class OfflineError extends Error {}

/** Indicates that retrying would only count against the client. */
export class EndedError extends Error {
  readonly title: string

  constructor({ status, message }: ApiError) {
    super(message)
    this.title = endings.get(status) ?? 'Your session ended'
  }
}

const endings: ReadonlyMap<number, string> = new Map([
  [403, 'You may not see this page'],
  [429, 'Too many requests came from here'],
])

export interface Ask {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly body?: unknown
  readonly ifMatch?: string | undefined
  readonly etag?: string | undefined
  readonly signal?: AbortSignal
}

export interface Answer<T> {
  /** `undefined` if the known state has not changed. */
  readonly body: T | undefined
  readonly etag: string | undefined
}

const deadlineMs = 10_000

/** Calls the API of the mount that serves this page. */
export async function ask<T>(path: string, options: Ask = {}): Promise<Answer<T>> {
  const { method = 'GET', body, ifMatch, etag, signal } = options
  const headers = new Headers({ Accept: 'application/json', 'X-Sluice-Admin': '1' })
  if (body !== undefined) headers.set('Content-Type', 'application/json')
  if (ifMatch !== undefined) headers.set('If-Match', ifMatch)
  if (etag !== undefined) headers.set('If-None-Match', etag)
  const deadline = AbortSignal.timeout(deadlineMs)
  const response = await fetch(`api/v1/${path}`, {
    method,
    headers,
    cache: 'no-store',
    // A redirect to a login is not an answer, and may lead to another origin.
    redirect: 'manual',
    credentials: 'same-origin',
    signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((cause: unknown) => {
    if (signal?.aborted) throw cause
    throw new OfflineError('The server does not answer', { cause })
  })
  const isPage = response.ok && (response.headers.get('Content-Type') ?? '').startsWith('text/html')
  if (response.type === 'opaqueredirect' || isPage) {
    throw new ApiError(401, 'The server asks for a login.', undefined)
  }
  const tag = response.headers.get('ETag') ?? undefined
  if (response.status === 304) return { body: undefined, etag: tag ?? etag }
  const text = await response.text()
  const parsed = parse(text)
  if (!response.ok) throw new ApiError(response.status, messageOf(parsed, response), parsed)
  return { body: parsed, etag: tag }
}

/** Requests an answer that cannot be cached. */
export async function call<T>(path: string, options: Ask = {}): Promise<T> {
  const { body } = await ask<T>(path, options)
  if (body === undefined) throw new ApiError(304, 'The server sent no answer', undefined)
  return body
}

function parse(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function messageOf(body: unknown, response: Response): string {
  if (typeof body === 'object' && body !== null) {
    for (const field of ['detail', 'message', 'title'] as const) {
      const text: unknown = Reflect.get(body, field)
      if (typeof text === 'string' && text !== '') return text
    }
  }
  return `The server answered ${response.status} ${response.statusText}`.trim()
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
