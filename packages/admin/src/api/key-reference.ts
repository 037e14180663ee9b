import { isIP } from 'node:net'
import type { NamedIdentity } from '@sluice/policies'
import { ApiError } from './api-error.ts'

/** The key of a request, as a body has it. */
export type KeyReference =
  | string
  | { readonly digest: string }
  | Readonly<Record<string, string | number>>

const digestForm = /^[\w-]{22}$/

/**
 * Reads `user ada`, `tenant acme, ip 203.0.113.9`, `digest …` and the forms with fields. A value
 * with a comma in it may stand in double quotes, as in JSON.
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
  // A comma parts two keys only where the name of one follows.
  const parting = new RegExp(`,\\s*(?=(?:${names.map(escaped).join('|')})\\s)`)
  const key: Record<string, string> = Object.create(null)
  for (const part of typed.split(parting)) {
    const [, name, value] = /^(\S+)\s+(.+)$/s.exec(part.trim()) ?? []
    if (name === undefined || value === undefined || !names.includes(name) || name in key) {
      throw unreadable(names)
    }
    key[name] = unquoted(value, names)
  }
  return { key: { ...key } }
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

function unquoted(value: string, names: readonly string[]): string {
  if (!value.startsWith('"')) return value
  try {
    const text: unknown = JSON.parse(value)
    if (typeof text === 'string' && text !== '') return text
  } catch {
    // Said below.
  }
  throw unreadable(names)
}

function unreadable(names: readonly string[]): ApiError {
  const known = names.join(', ')
  return new ApiError(
    400,
    `key must be a name and a value, such as 'ip 203.0.113.9', several with commas between, or a digest; the names are ${known}.`,
  )
}

function escaped(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
