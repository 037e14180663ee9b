import type { Dialect } from './formats/dialect-format.ts'
import { formats } from './formats/formats.ts'

/**
 * Checks the option `headers`, once, at construction.
 *
 * @returns the dialects under their own names (`draft-9` becomes `draft-11`), as a copy in the
 * given order
 * @throws TypeError for an unknown or repeated dialect, or two dialects of one family
 */
export function checkDialects(value: unknown): readonly Dialect[] {
  if (!Array.isArray(value)) {
    throw invalid(value, "write an array such as ['draft-11', 'legacy'], or [] for none")
  }
  const dialects: Dialect[] = []
  for (const name of value) {
    if (!isDialect(name)) throw invalid(value, `remove or correct ${show(name)}`)
    const { name: canonical, family } = formats[name]
    if (dialects.includes(canonical))
      throw invalid(value, `remove ${show(name)}: ${canonical} is already in the list`)
    const rival = dialects.find((other) => formats[other].family === family)
    if (rival !== undefined) {
      const fix = `keep either ${show(rival)} or ${show(name)}`
      throw invalid(value, `${fix}: both write the same fields, with different meanings`)
    }
    dialects.push(canonical)
  }
  return dialects
}

function isDialect(name: unknown): name is Dialect {
  return typeof name === 'string' && Object.hasOwn(formats, name)
}

function invalid(value: unknown, fix: string): TypeError {
  const legal = Object.keys(formats).map(show).join(', ')
  return new TypeError(
    `headers must be an array of distinct dialects (${legal}), but is ${show(value)}; ${fix}`,
  )
}

function show(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  if (Array.isArray(value)) return `[${value.map(show).join(', ')}]`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
