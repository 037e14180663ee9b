import { createHash, createHmac } from 'node:crypto'

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/**
 * Digests an identity before it leaves the process. It may be an API key, which must not stand in
 * Redis or in a handler's log. Without a secret, somebody could find an address by trying all of
 * them.
 */
export function identityDigest(identity: string, secret: string | undefined): string {
  if (secret === undefined) return digest(identity)
  return createHmac('sha256', secret).update(identity).digest('base64url')
}
