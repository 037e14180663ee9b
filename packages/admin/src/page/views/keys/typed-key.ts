import { readNames } from '../../../api/typed-names.ts'

/** A key as it is sent: as it was typed, or as a digest. */
export type KeyReference = string | { readonly digest: string }

const digestPattern = /^[A-Za-z0-9_-]{22}$/

/** Reads what is typed: 22 letters of a digest, or `user ada`. */
export function keyOf(typed: string): KeyReference {
  const text = typed.trim()
  return digestPattern.test(text) ? { digest: text } : text
}

/**
 * Reads the values by the names of keys that a typed key has: `tenant acme, ip 203.0.113.9`.
 * @param names the names that can be typed
 * @returns `undefined` for a digest, which tells no values
 */
export function namedKeyOf(
  typed: string,
  names: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (isAddress(typed.trim()) && names.includes('ip')) return { ip: typed.trim() }
  return readNames(typed, names)
}

function isAddress(text: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(text) || /^[\da-f]*:[\da-f:.]+$/i.test(text)
}
