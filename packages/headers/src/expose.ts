import type { Dialect } from './formats/dialect-format.ts'
import { formats } from './formats/formats.ts'

/**
 * Fields that a cross-origin page can read only if Access-Control-Expose-Headers lists them. The
 * IETF fields come first, then the others, then Retry-After.
 */
export function exposedHeaders(dialects: readonly Dialect[]): readonly string[] {
  const all = dialects.map((dialect) => formats[dialect])
  const sorted = all.sort((one, other) => one.family.localeCompare(other.family))
  return [...sorted.flatMap(({ fieldNames }) => fieldNames), 'Retry-After']
}

/**
 * Appends our names to the application's Access-Control-Expose-Headers, each name once, ignoring
 * case. A list with a `*` is unchanged: it exposes everything that the Fetch standard allows.
 */
export function mergeExposed(existing: string | undefined, names: readonly string[]): string {
  const listed = (existing ?? '').split(',').map((name) => name.trim())
  const members = listed.filter((name) => name !== '')
  if (members.includes('*')) return existing ?? ''
  const known = new Set(members.map((name) => name.toLowerCase()))
  const missing = names.filter((name) => !known.has(name.toLowerCase()))
  return [...members, ...missing].join(', ')
}
