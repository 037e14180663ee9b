import { fileSchema } from '../../packages/policies/src/schema/file-schema.ts'
import type { OptionEntries } from '../support/option-entries.ts'

/** The types that declare the options of the file, and of the objects below its fields. */
const ofGuards = ['http#GuardSettings']
/** What a route leaves out is as around it. */
const ofRoutes = ['http#RouteOverride']
const ofPolicies = ['http#HttpPolicyFields', 'core#PolicyFields']
const below: Readonly<Record<string, readonly string[]>> = {
  policies: ofPolicies,
  profiles: ofPolicies,
  routes: ofRoutes,
  overrides: [],
  penalty: ['http#GuardPenalty'],
  allow: ['http#AccessListOptions'],
  block: ['http#AccessListOptions'],
  async: ['core#AsyncOptions'],
  schedule: ['http#ScheduleOptions'],
  rules: ['http#ScheduleRule'],
}

/** Parts that are shorter are written out. */
const minLength = 150

/** The JSON Schema of policy files (2020-12), as it is shipped in `schema.json`. Parts that occur more than once stand in `$defs`. */
export function publishedSchema(entriesOf: OptionEntries): object {
  const schema = described(fileSchema, entriesOf, ofGuards)
  const counts = new Map<string, number>()
  count(schema)
  const names = new Map<string, string>()
  const definitions: Record<string, unknown> = {}
  const { $schema, ...root } = shared(schema, true)
  return { $schema, ...root, $defs: definitions }

  function count(part: unknown): void {
    if (typeof part !== 'object' || part === null) return
    const text = JSON.stringify(part)
    counts.set(text, (counts.get(text) ?? 0) + 1)
    for (const inner of Object.values(part)) count(inner)
  }

  function shared(part: object, isRoot = false): Record<string, unknown> {
    const text = JSON.stringify(part)
    const isShared = isSchema(part) && text.length >= minLength && (counts.get(text) ?? 0) > 1
    if (!isShared || isRoot) return mapped(part)
    const known = names.get(text)
    const name = known ?? `part${names.size + 1}`
    names.set(text, name)
    if (known === undefined) definitions[name] = mapped(part)
    return { $ref: `#/$defs/${name}` }
  }

  function mapped(part: object): Record<string, unknown> {
    return Object.fromEntries(Object.entries(part).map(([field, inner]) => [field, of(inner)]))
  }

  function of(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(of)
    return typeof value === 'object' && value !== null ? shared(value) : value
  }
}

/** Adds to the fields of a schema the sentences and the defaults of the options that they are. */
function described(schema: object, entriesOf: OptionEntries, types: readonly string[]): object {
  const entries = entriesOf(types)
  /** Options whose default is that of the route or the guard around. */
  const outer = entriesOf(types === ofGuards ? [] : types === ofRoutes ? ofRoutes : ofGuards)
  const describe = ([name, field]: [string, unknown]): [string, unknown] => {
    const entry = entries.get(name)
    const inner = of(field, below[name] ?? types)
    if (!entry || typeof inner !== 'object') return [name, inner]
    const value = outer.has(name) ? undefined : literalOf(entry.byDefault)
    const own = { description: entry.about, ...(value !== undefined && { default: value }) }
    return [name, { ...own, ...inner }]
  }
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, inner]) => [
      keyword,
      keyword === 'properties'
        ? Object.fromEntries(Object.entries(inner).map(describe))
        : of(inner, types),
    ]),
  )

  function of(value: unknown, inside: readonly string[]): unknown {
    if (Array.isArray(value)) return value.map((each) => of(each, inside))
    if (typeof value !== 'object' || value === null) return value
    return described(value, entriesOf, inside)
  }
}

/** A default that is a value, and no words about it. */
function literalOf(text: string): unknown {
  try {
    return JSON.parse(text.replaceAll("'", '"').replaceAll('_', ''))
  } catch {
    return undefined
  }
}

/** Tells a schema from a table of properties, and from an example. */
function isSchema(part: object): boolean {
  return 'type' in part
    ? typeof part.type === 'string'
    : 'anyOf' in part && Array.isArray(part.anyOf)
}
