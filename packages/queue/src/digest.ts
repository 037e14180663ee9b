import { createHash, createHmac } from 'node:crypto'

/** @param secret without it, short strings could be found by brute force */
export function digest(text: string, secret?: string): string {
  const hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret)
  return hash.update(text).digest('base64url')
}
