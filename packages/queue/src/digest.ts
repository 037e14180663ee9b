import { createHash, createHmac } from 'node:crypto'

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/**
 * Identities are digested before they leave the process: an API key is one, and is not to stand in Redis or in the log of a handler. With a
 * secret nobody can find one by trying: there are only so many addresses.
 */
export function identityDigest(identity: string, secret: string | undefined): string {
  if (secret === undefined) return digest(identity)
  return createHmac('sha256', secret).update(identity).digest('base64url')
}
