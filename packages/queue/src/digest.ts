import { createHash, createHmac } from 'node:crypto'

/** @param secret without it, somebody could find a short text by trying all of them */
export function digest(text: string, secret?: string): string {
  const hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret)
  return hash.update(text).digest('base64url')
}
