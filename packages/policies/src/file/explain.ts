import { type TSchema, Type } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { isSluiceError, knownFields, quote } from '@sluice/core'

/** The way to a value in a file: names of fields and places in lists. */
export type Path = readonly (string | number)[]

/** The fault of a value. */
export interface Fault {
  readonly path: Path
  readonly message: string
  /** Tells whether the fault is a key, and not the value under it. */
  readonly atKey: boolean
  /** Tells whether the schema finds it; a rule between fields is checked as for options in code. */
  readonly kind: 'syntax' | 'schema' | 'rule'
}

/**
 * Finds what the schema does not accept: one fault for each place.
 * @param name the value as messages name it @default the file
 */
export function schemaFaults(schema: TSchema, value: unknown, name = ''): readonly Fault[] {
  if (Value.Check(schema, value)) return []
  const whole = { name, value }
  const faults = [...Value.Errors(schema, value)].map((error) => explain(innermost(error), whole))
  const known = new Set<string>()
  return faults.filter(({ path }) => {
    const place = JSON.stringify(path)
    if (known.has(place)) return false
    known.add(place)
    return true
  })
}

/** Of the forms that a value may have, the one that it comes closest to. */
function innermost(error: ValueError): ValueError {
  if (error.type !== ValueErrorType.Union) return error
  const forms = error.errors.map((form) => [...form])
  const ranked = forms
    .filter((form) => !form.some((each) => isOtherForm(each, error)))
    .sort((one, other) => one.length - other.length)
  const [best] = ranked
  const other = best ? undefined : otherTag(forms, error)
  if (other) return other
  if (!best?.[0] || (ranked.length > 1 && best.every(({ path }) => path === error.path)))
    return error
  return innermost(
    best.find(({ type }) => type === ValueErrorType.ObjectAdditionalProperties) ?? best[0],
  )
}

/** A tag that no form has: the name of an algorithm that there is not. */
function otherTag(
  forms: readonly (readonly ValueError[])[],
  { path }: ValueError,
): ValueError | undefined {
  const tags = forms.flatMap(
    (form) => form.find((each) => each.path !== path && each.type === ValueErrorType.Literal) ?? [],
  )
  const [tag] = tags
  if (!tag || tags.length < forms.length || tags.some((each) => each.path !== tag.path))
    return undefined
  return { ...tag, schema: { ...Type.Any(), anyOf: tags.map(({ schema }) => schema) } }
}

/** The value has another kind, or another algorithm: the message of this form would mislead. */
function isOtherForm(each: ValueError, { path }: ValueError): boolean {
  if (each.path === path)
    return each.type !== ValueErrorType.ObjectMinProperties && !isOfObject(each)
  if (each.path === `${path}/algorithm`) return true
  return each.path === `${path}/after` && each.type === ValueErrorType.Literal
}

function isOfObject({ type }: ValueError): boolean {
  return type === ValueErrorType.ObjectRequiredProperty
}

/** A value that is checked, and its name in messages; '' for the file. */
interface Whole {
  readonly name: string
  readonly value: unknown
}

function explain(error: ValueError, whole: Whole): Fault {
  const path = pathOf(error.path, whole.value)
  const fault = { path, atKey: false, kind: 'schema' } as const
  const isSecret = hasIdentities(path)
  if (error.type === ValueErrorType.ObjectAdditionalProperties) {
    const field = String(path.at(-1) ?? '')
    const where = placeOf(path.slice(0, -1), whole)
    const message = isSecret
      ? `${where} has an option that does not exist`
      : unknownField(field, path, { error, whole, where })
    return { ...fault, atKey: true, message }
  }
  if (error.type === ValueErrorType.ObjectRequiredProperty) {
    const where = placeOf(path.slice(0, -1), whole)
    return {
      ...fault,
      path: path.slice(0, -1),
      message: `${where} needs ${String(path.at(-1))}: ${legalOf(error.schema)}`,
    }
  }
  const message = `${placeOf(path, whole)} must be ${legalOf(error.schema)}`
  return { ...fault, message: isSecret ? message : `${message}, but is ${quote(error.value)}` }
}

/** Tells whether identities stand in this place of a file: messages must not have its values. */
export function hasIdentities([root, , field]: Path): boolean {
  const place = String(root === 'routes' ? field : root)
  if (place === 'overrides') return !['policy', 'limit', 'mode', 'until'].includes(String(field))
  return ['allow', 'block'].includes(place)
}

/** In the words of an option in code that does not exist. */
function unknownField(
  field: string,
  path: Path,
  {
    error,
    whole,
    where,
  }: { readonly error: ValueError; readonly whole: Whole; readonly where: string },
): string {
  const { properties = {}, patternProperties } = error.schema
  const [pattern] = Object.values<TSchema>(patternProperties ?? {})
  if (pattern) return `${where} has the name ${quote(field)}, which is not allowed there`
  try {
    knownFields({ [field]: valueAt(whole.value, path) }, where, Object.keys(properties))
  } catch (known) {
    if (isSluiceError(known)) return known.message
    throw known
  }
  return `${where}: there is no option ${quote(field)}`
}

/** The legal values of a schema, in words. */
function legalOf(schema: TSchema): string {
  if (schema.title) return schema.title
  if (schema.anyOf) {
    return schema.anyOf.map((form: TSchema) => legalOf(form)).join(', or ')
  }
  if ('const' in schema)
    return typeof schema.const === 'string' ? `'${schema.const}'` : String(schema.const)
  switch (schema.type) {
    case 'integer': {
      const { minimum, maximum } = schema
      if (minimum === undefined) return 'a whole number'
      return maximum === Number.MAX_SAFE_INTEGER || maximum === undefined
        ? `a whole number ≥ ${minimum}`
        : `a whole number from ${minimum} to ${maximum}`
    }
    case 'number':
      return schema.minimum === undefined ? 'a number' : `a number ≥ ${schema.minimum}`
    case 'boolean':
      return 'true or false'
    case 'string':
      return schema.minLength ? 'text that is not empty' : 'text'
    case 'array':
      return schema.minItems
        ? `a list of ${schema.minItems} to ${schema.maxItems ?? 'more'} items`
        : 'a list'
    default:
      return 'an object of options'
  }
}

/** JSON pointers name places of lists as fields are named: the value tells them apart. */
function pathOf(pointer: string, root: unknown): Path {
  const path: (string | number)[] = []
  let value = root
  for (const part of pointer.split('/').slice(1)) {
    const field = part.replaceAll('~1', '/').replaceAll('~0', '~')
    path.push(Array.isArray(value) ? Number(field) : field)
    value = typeof value === 'object' && value !== null ? Reflect.get(value, field) : undefined
  }
  return path
}

function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, field) =>
      typeof value === 'object' && value !== null ? Reflect.get(value, field) : undefined,
    root,
  )
}

function placeOf(path: Path, { name }: Whole): string {
  return optionOf(path, name) || 'the file'
}

/** A path as messages have it: `routes['POST /login'].policies[0].limit`. */
export function optionOf(path: Path, name = ''): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    if (!/^[A-Za-z_$][\w$]*$/.test(part)) return `${text}['${part}']`
    return text === '' ? part : `${text}.${part}`
  }, name)
}
