import type { HttpRequest } from '@sluice/http'
import { digest } from '../digest.ts'

/** A request as a job carries it. */
export interface RequestEnvelope {
  readonly method: string
  /** As it was sent, with the query. */
  readonly url: string
  /** The pattern that the router matched; `undefined` where nothing is matched (yet). */
  readonly route: string | undefined
  /** The headers that `headers` lists. */
  readonly headers: Readonly<Record<string, string>>
  /** Digest of the identity of the request, as in the job; never the key itself. */
  readonly identity: string
  /** JSON, text, or bytes as base64; left out where the request has none. */
  readonly body?: unknown
  /** Encoding of a `body` of bytes. */
  readonly encoding?: 'base64'
}

interface EnvelopeParts {
  /** The names of those that are kept. */
  readonly headers: readonly string[]
  readonly identity: string
  readonly body: { readonly value: unknown; readonly encoding?: 'base64' }
}

/** Makes the payload of a job from a request. It has only the headers that are listed, because others carry secrets. */
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

/** Fingerprint of a request, which tells two requests with one key apart: method, URL and body, no headers. */
export function fingerprintOf({ method, url, body, encoding }: RequestEnvelope): string {
  const text = JSON.stringify([
    method,
    url,
    encoding ?? null,
    ...(body === undefined ? [] : [body]),
  ])
  return digest(text)
}
