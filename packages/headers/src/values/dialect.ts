/**
 * A family of header fields that clients read.
 *
 * - `draft-11`: `RateLimit` and `RateLimit-Policy` in the syntax of
 *   draft-ietf-httpapi-ratelimit-headers-11, which has
 *   not changed since -08; `draft-8` to `draft-10` are other names for it.
 * - `draft-7`: the same two fields in the incompatible types of revision 07.
 * - `draft-6`: `RateLimit-Limit`, `-Remaining`, `-Reset` and `-Policy`, as in revisions 04 to 06.
 * - `legacy`: `X-RateLimit-Limit`, `-Remaining`, `-Reset`, where the reset is in epoch seconds
 *   (GitHub, express-rate-limit).
 * - `legacy-delta`: the same names, where the reset is in seconds from now (what
 *   `@fastify/rate-limit` sends).
 */
export type Dialect =
  | 'draft-11'
  | 'draft-10'
  | 'draft-9'
  | 'draft-8'
  | 'draft-7'
  | 'draft-6'
  | 'legacy'
  | 'legacy-delta'

interface Syntax {
  /** The dialect under its own name. */
  readonly canonical: Dialect
  /**
   * Dialects of one family share field names with other meanings, so a response carries one of them
   * at most.
   */
  readonly family: 'ietf' | 'legacy'
}

const draft11: Syntax = { canonical: 'draft-11', family: 'ietf' }

const syntaxes: Readonly<Record<Dialect, Syntax>> = {
  'draft-11': draft11,
  'draft-10': draft11,
  'draft-9': draft11,
  'draft-8': draft11,
  'draft-7': { canonical: 'draft-7', family: 'ietf' },
  'draft-6': { canonical: 'draft-6', family: 'ietf' },
  legacy: { canonical: 'legacy', family: 'legacy' },
  'legacy-delta': { canonical: 'legacy-delta', family: 'legacy' },
}

export function isLegacy(dialect: Dialect): boolean {
  return syntaxes[dialect].family === 'legacy'
}

/**
 * Checks the option `headers`, once, at construction.
 *
 * @returns the dialects under their own names (`draft-9` becomes `draft-11`), as a copy in the
 * given order
 * @throws TypeError for an unknown or repeated dialect, two IETF generations, or both meanings of
 * `X-RateLimit-Reset`
 */
export function checkDialects(value: unknown): readonly Dialect[] {
  if (!Array.isArray(value)) {
    throw invalid(
      value,
      "write an array such as ['draft-11', 'legacy'], or [] to send no such fields",
    )
  }
  const dialects: Dialect[] = []
  for (const name of value) {
    if (!isDialect(name)) throw invalid(value, `remove or correct ${show(name)}`)
    const { canonical } = syntaxes[name]
    if (dialects.includes(canonical))
      throw invalid(value, `remove ${show(name)}: ${canonical} is there already`)
    const rival = dialects.find((other) => syntaxes[other].family === syntaxes[name].family)
    if (rival !== undefined) throw invalid(value, rivalry(rival, name))
    dialects.push(canonical)
  }
  return dialects
}

function isDialect(name: unknown): name is Dialect {
  return typeof name === 'string' && Object.hasOwn(syntaxes, name)
}

function rivalry(one: Dialect, other: Dialect): string {
  const fields = isLegacy(one)
    ? 'give X-RateLimit-Reset two meanings'
    : 'give RateLimit fields two types'
  return `keep either ${show(one)} or ${show(other)}: together they ${fields} in one response`
}

function invalid(value: unknown, fix: string): TypeError {
  const legal = Object.keys(syntaxes).map(show).join(', ')
  return new TypeError(
    `headers must be an array of distinct dialects (${legal}), but is ${show(value)}; ${fix}`,
  )
}

function show(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  if (Array.isArray(value))
    return `[${value.map((item) => (Array.isArray(item) ? '[…]' : show(item))).join(', ')}]`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
