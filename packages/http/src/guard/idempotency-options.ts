import { given, invalid, wholeNumber } from '@sluice/core'
import { header } from '../keys/headers.ts'
import type { KeyResolver } from '../keys/resolver.ts'

/** How the retries of one request are told from other requests. */
export interface IdempotencyOptions<Native> {
  /**
   * What a client sends again with a retry, so that both are charged once: `true` for the header Idempotency-Key, or a resolver. A retry has
   * the key, the method, the path, the cost and the identity of the request before it. `false`: none, for a route.
   * @default none: every request is charged
   */
  idempotencyKey?: boolean | KeyResolver<Native>
  /**
   * How many retries with one key are free in the longest window of the policies: a whole number from 1 to 100. A client that makes up keys gets so
   * many requests more for each that it pays for.
   * @default 3
   */
  idempotentRetries?: number
}

export const idempotencyFields: readonly (keyof IdempotencyOptions<never>)[] = [
  'idempotencyKey',
  'idempotentRetries',
]

export interface Idempotency<Native> {
  readonly key: KeyResolver<Native>
  readonly retries: number
}

/** @throws SluiceError when an option is out of range; `undefined` where every request is charged */
export function idempotencyOf<Native>({
  idempotencyKey: key,
  idempotentRetries,
}: IdempotencyOptions<Native>): Idempotency<Native> | undefined {
  const place = { option: 'idempotentRetries' }
  const retries = wholeNumber(given(idempotentRetries, 3), place, { min: 1, max: 100 })
  if (key === undefined || key === false) return undefined
  if (key === true) return { key: header('idempotency-key'), retries }
  if (typeof key === 'function') return { key, retries }
  const legal = 'true for the header Idempotency-Key, a resolver such as header(name), or false'
  throw invalid({ option: 'idempotencyKey' }, key, legal)
}

/** A quoted key is the same as a bare one: many clients leave the quotes of a structured field out. */
export function unquoted(key: string): string {
  const [, tag = '', text] = /^(@header\/[^/]*\/)?\s*"((?:[^"\\]|\\["\\])*)"\s*$/.exec(key) ?? []
  return text === undefined ? key : tag + text.replace(/\\(.)/g, '$1')
}
