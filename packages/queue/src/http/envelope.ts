import type { HttpRequest } from '@sluice/http'
import { digest } from '../digest.ts'

/** A request as a job carries it. */
export interface RequestEnvelope {
  readonly method: string
  /** URL as it was sent, with the query. */
  readonly url: string
  /** The pattern that the router matched; `undefined` if it has matched none. */
  readonly route: string | undefined
  /** The headers that `headers` lists. */
  readonly headers: Readonly<Record<string, string>>
  /** Digest of the identity of the request, as in the job; never the key itself. */
  readonly identity: string
  /** The body: JSON, text, or bytes as base64; left out if the request has none. */
  readonly body?: unknown
  /** Encoding of a `body` of bytes. */
  readonly encoding?: 'base64'
}

interface EnvelopeParts {
  /** Names of the headers to keep. */
  readonly headers: readonly string[]
  readonly identity: string
  readonly body: { readonly value: unknown; readonly encoding?: 'base64' }
}

/**
 * Makes the payload of a job from a request. It has only the listed headers, because others may
 * carry secrets.
 */
export function envelopeOf(
  request: HttpRequest,
  { headers, identity, body }: EnvelopeParts,
): RequestEnvelope {
  const kept = headers.flatMap((name) => {
    const value = request.header(name)
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    method: request.method,
    url: request.content?.url ?? request.path,
    route: request.route,
    headers: Object.fromEntries(kept),
    identity,
    ...(body.value === undefined ? {} : { body: body.value }),
    ...(body.encoding ? { encoding: body.encoding } : {}),
  }
}

/**
 * Makes the fingerprint of a request from its method, URL and body. It tells two requests with one
 * idempotency key apart.
 */
export function fingerprintOf({ method, url, body, encoding }: RequestEnvelope): string {
  const text = JSON.stringify([
    method,
    url,
    encoding ?? null,
    ...(body === undefined ? [] : [body]),
  ])
  return digest(text)
}
