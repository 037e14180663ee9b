import { digest } from '../digest.ts'
import type { RequestEnvelope } from './envelope.ts'

/** What makes a request another one, where it comes with the key of an earlier one: its method, URL and body. Headers do not. */
export function fingerprintOf({ method, url, body, encoding }: RequestEnvelope): string {
  const text = JSON.stringify([
    method,
    url,
    encoding ?? null,
    ...(body === undefined ? [] : [body]),
  ])
  return digest(text)
}
