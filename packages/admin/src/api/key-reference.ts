import { isIP } from 'node:net'
import type { NamedIdentity } from '@sluice/policies'
import { ApiError } from './api-error.ts'
import { readNames } from './typed-names.ts'

/** The key of a request, as a body has it. */
export type KeyReference =
  | string
  | { readonly digest: string }
  | Readonly<Record<string, string | number>>

const digestForm = /^[\w-]{22}$/

/**
 * Reads a key as it is typed, an address alone, `digest …` and the forms with fields.
 * @param names the names of keys
 * @throws ApiError that says how keys are written
 */
export function readKey(reference: KeyReference, names: readonly string[]): NamedIdentity {
  if (typeof reference !== 'string') {
    return isDigest(reference) ? reference : { key: reference }
  }
  const typed = reference.trim()
  if (isIP(typed) !== 0) return { key: { ip: typed } }
  const [, digest = typed] = /^digest\s+(\S+)$/.exec(typed) ?? []
  if (digestForm.test(digest)) return { digest }
  const key = readNames(typed, names)
  if (!key) throw unreadable(names)
  return { key }
}

/** The names of the key, for the audit trail. */
export function kindOf(identity: NamedIdentity): string {
  return 'digest' in identity && isDigest(identity)
    ? 'digest'
    : Object.keys('key' in identity ? identity.key : {}).join(' and ')
}

function isDigest(identity: object): identity is { readonly digest: string } {
  const digest: unknown = Reflect.get(identity, 'digest')
  const isAlone = Object.keys(identity).length === 1
  return isAlone && typeof digest === 'string' && digestForm.test(digest)
}

function unreadable(names: readonly string[]): ApiError {
  const known = names.join(', ')
  return new ApiError(
    400,
    `key must be a name and a value, such as 'ip 203.0.113.9', several with commas between, or a digest; the names are ${known}.`,
  )
}
