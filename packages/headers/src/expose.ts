import { formats } from './formats/formats.ts'
import { githubFieldNames } from './formats/legacy.ts'
import { type Dialect, isLegacy } from './values/dialect.ts'

/** Options of `exposeHeaders`. */
export interface ExposeOptions {
  /** True if `X-RateLimit-Used` and `X-RateLimit-Resource` are sent too. @default false */
  readonly githubExtras?: boolean | undefined
}

/**
 * The fields that a cross-origin page can read only if Access-Control-Expose-Headers lists them.
 * The IETF's fields come first, then the legacy ones, then Retry-After.
 */
export function exposedHeaders(
  dialects: readonly Dialect[],
  { githubExtras = false }: ExposeOptions = {},
): readonly string[] {
  const ietf = dialects.filter((dialect) => !isLegacy(dialect))
  const legacy = dialects.filter(isLegacy)
  const names = [...ietf, ...legacy].flatMap((dialect) => formats[dialect].fieldNames)
  if (githubExtras && legacy.length > 0) names.push(...githubFieldNames)
  return [...new Set(names), 'Retry-After']
}

/**
 * Appends our names to the application's Access-Control-Expose-Headers, each name once, whatever
 * its case. A list with a `*` stays as it is: it exposes all that the Fetch standard allows.
 */
export function mergeExposed(existing: string | undefined, names: readonly string[]): string {
  const listed = (existing ?? '').split(',').map((name) => name.trim())
  const members = listed.filter((name) => name !== '')
  if (members.includes('*')) return existing ?? ''
  const known = new Set(members.map((name) => name.toLowerCase()))
  const missing = names.filter((name) => !known.has(name.toLowerCase()))
  return [...members, ...missing].join(', ')
}
