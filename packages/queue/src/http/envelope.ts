import type { HttpRequest } from '@sluice/http'
import { digest } from '../digest.ts'

/** A request as stored in a job. */
export interface RequestEnvelope {
  readonly method: string
  /** The URL as it was sent, with the query. */
  readonly url: string
  /** The route pattern; `undefined` if no route matched. */
  readonly route: string | undefined
  /** The headers listed in `headers`. */
  readonly headers: Readonly<Record<string, string>>
  /** Digest of the request's identity, as in the job; never the key itself. */
  readonly identity: string
  /** The body: JSON, text, or bytes as base64; omitted if the request has none. */
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
 * Creates the payload of a job from a request. It has only the listed headers, because others may
 * contain secrets.
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
 * Computes the fingerprint of a request from its method, URL and body. It distinguishes two
 * requests with the same idempotency key.
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
