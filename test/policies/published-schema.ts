import { fileSchema } from '../../packages/policies/src/schema/file-schema.ts'

/** Parts that are shorter are written out. */
const minLength = 150

/**
 * The JSON Schema of policy files (2020-12), as it is shipped in `schema.json`. Parts that occur
 * more than once stand in `$defs`.
 */
export function publishedSchema(): object {
  const counts = new Map<string, number>()
  count(fileSchema)
  const names = new Map<string, string>()
  const definitions: Record<string, unknown> = {}
  const { $schema, ...root } = shared(fileSchema, true)
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

/** Tells a schema from a table of properties, and from an example. */
function isSchema(part: object): boolean {
  return 'type' in part
    ? typeof part.type === 'string'
    : 'anyOf' in part && Array.isArray(part.anyOf)
}
