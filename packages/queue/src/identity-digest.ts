import { createHash, createHmac } from 'node:crypto'

/**
 * Identities are digested before they leave the process: an API key is one, and is not to stand in Redis or in the log of a handler. With a
 * secret nobody can find one by trying: there are only so many addresses.
 */
export function identityDigest(identity: string, secret: string | undefined): string {
  const hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret)
  return hash.update(identity).digest('base64url')
}
