import { isIP } from 'node:net'
import type { NamedIdentity } from '@sluice/policies'
import { ApiError } from '../stores/api-error.ts'

export type KeyReference =
  | string
  | { readonly digest: string }
  | Readonly<Record<string, string | number>>

const digestForm = /^[\w-]{22}$/
/** A key as used in counts and top keys: `@user/ada`. */
const canonicalForm = /^@([\w-]+)\/(.+)$/s

/**
 * Parses a key as typed or shown, a plain address, `digest …`, and the object forms.
 * @throws ApiError that explains the key syntax
 */
export function readKey(reference: KeyReference, names: readonly string[]): NamedIdentity {
  if (typeof reference !== 'string') {
    return isDigest(reference) ? reference : { key: reference }
  }
  const typed = reference.trim()
  if (isIP(typed) !== 0) return { key: { ip: typed } }
  const [, digest = typed] = /^digest\s+(\S+)$/.exec(typed) ?? []
  if (digestForm.test(digest)) return { digest }
  const [, kind = '', value = ''] = canonicalForm.exec(typed) ?? []
  const key = names.includes(kind) ? { [kind]: value } : readNames(typed, names)
  if (!key) throw unreadable(names)
  return { key }
}

/** Returns whether a reference is only a value, such as `acme`, whose name must be found. */
export function isBareValue(
  reference: KeyReference,
  names: readonly string[],
): reference is string {
  if (typeof reference !== 'string') return false
  const typed = reference.trim()
  return (
    /^[^\s@"]+$/.test(typed) && !digestForm.test(typed) && ![...names, 'digest'].includes(typed)
  )
}

/** Returns the key's names, for the audit trail. */
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
    `key must be a name and a value, such as 'ip 203.0.113.9', several separated by commas, or a digest; the names are ${known}.`,
  )
}

/**
 * Parses `user ada` and `tenant acme, ip 203.0.113.9`. A value that contains a comma and a name
 * must be in double quotes, as in JSON.
 * @returns values by name; `undefined` for any other form
 */
function readNames(
  typed: string,
  names: readonly string[],
): Readonly<Record<string, string>> | undefined {
  // A comma separates two keys only if a name follows, and never within quotes.
  const end = `(?:,(?=\\s*(?:${names.map(escaped).join('|')})\\s)|$)`
  const part = new RegExp(`\\s*(\\S+)\\s+("(?:[^"\\\\]|\\\\.)*"\\s*|.+?)${end}`, 'sy')
  const key: Record<string, string> = Object.create(null)
  do {
    const [, name = '', typedValue = ''] = part.exec(typed) ?? []
    const value = unquoted(typedValue.trim())
    if (!names.includes(name) || name in key || value === '') return undefined
    key[name] = value
  } while (part.lastIndex < typed.length)
  return { ...key }
}

/** Returns '' for a quoted string that is not valid JSON. */
function unquoted(value: string): string {
  if (!value.startsWith('"')) return value
  try {
    const text: unknown = JSON.parse(value)
    return typeof text === 'string' ? text : ''
  } catch {
    return ''
  }
}

function escaped(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
