import { type TSchema, Type } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { isSluiceError, knownFields, quote } from '@sluice/core'

/** The path to a value in a file: field names and list indexes. */
export type Path = readonly (string | number)[]

/** A fault of a value. */
export interface Fault {
  readonly path: Path
  readonly message: string
  /** True if the fault is a key, not the value under it. */
  readonly atKey: boolean
  /** The check that failed. A `rule` between fields is checked as for options in code. */
  readonly kind: 'syntax' | 'schema' | 'rule'
}

/**
 * Finds values that the schema rejects, up to a number of faults.
 * @param name the name of the value in messages; '' for the file
 */
export function schemaFaults(
  schema: TSchema,
  value: unknown,
  { name, most }: { readonly name: string; readonly most: number },
): readonly Fault[] {
  const found = new Map<string, ReturnType<typeof explain>>()
  for (const error of inClosestForms(Value.Errors(schema, value))) {
    const fault = explain(error, value, name)
    found.set(JSON.stringify([fault.path, fault.message]), fault)
    if (found.size >= most) break
  }
  const faults = [...found.values()]
  const meant = new Set(
    faults.flatMap(({ atKey, path, message }) =>
      atKey ? [JSON.stringify([path.slice(0, -1), /did you mean '(.+)'/.exec(message)?.[1]])] : [],
    ),
  )
  return faults.filter(({ path, missing }) => !meant.has(JSON.stringify([path, missing])))
}

/** Replaces an error about all forms of a value with the errors of the closest form. */
function* inClosestForms(errors: Iterable<ValueError>): Generator<ValueError> {
  for (const error of errors) {
    // A missing field already has its own error.
    if (error.value === undefined && error.type !== ValueErrorType.ObjectRequiredProperty) continue
    if (error.type === ValueErrorType.Union) yield* ofClosestForm(error)
    else yield error
  }
}

function* ofClosestForm(error: ValueError): Generator<ValueError> {
  const forms = error.errors.map((form) => first(form))
  const ranked = forms
    .filter((form) => !form.some((each) => isOtherForm(each, error)))
    .sort((one, other) => one.length - other.length)
  const [best] = ranked
  const tag = best ? undefined : otherTag(forms, error)
  const isAnyForm = ranked.length > 1
  if (tag) yield tag
  else if (!best?.[0] || (isAnyForm && best.every(({ path }) => path === error.path))) yield error
  else if (!isAnyForm) yield* inClosestForms(best)
  else {
    const isUnknown = ({ type }: ValueError) => type === ValueErrorType.ObjectAdditionalProperties
    yield* inClosestForms([best.find(isUnknown) ?? best[0]])
  }
}

/** The errors of a form, by which forms are compared. */
const maxOfForm = 50

function first(errors: Iterable<ValueError>): readonly ValueError[] {
  const found: ValueError[] = []
  for (const error of errors) if (found.push(error) >= maxOfForm) break
  return found
}

/** A tag that no form has: the name of an unknown algorithm. */
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

/** The value has another type or algorithm: this form's message would mislead. */
function isOtherForm({ path: at, type }: ValueError, { path }: ValueError): boolean {
  if (at === path) return type !== ValueErrorType.ObjectMinProperties
  return at === `${path}/algorithm` || (at === `${path}/after` && type === ValueErrorType.Literal)
}

function explain(error: ValueError, root: unknown, name: string): Fault & { missing?: string } {
  const path = pathOf(error.path, root)
  const isSecret = hasIdentities(path)
  const holder = path.slice(0, -1)
  const field = String(path.at(-1) ?? '')
  const where = optionOf(holder, name) || 'the file'
  const fault = { path, atKey: false, kind: 'schema' } as const
  if (error.type === ValueErrorType.ObjectAdditionalProperties) {
    const message = isSecret ? `${where} has an unknown option` : unknownField(field, where, error)
    return { ...fault, atKey: true, message }
  }
  if (error.type === ValueErrorType.ObjectRequiredProperty) {
    const message = `${where} needs ${field}: ${legalOf(error.schema)}`
    return { ...fault, path: holder, message, missing: field }
  }
  const message = `${optionOf(path, name) || 'the file'} must be ${legalOf(error.schema)}`
  return { ...fault, message: isSecret ? message : `${message}, but is ${quote(error.value)}` }
}

/** Returns whether this part of a file contains identities: messages must not show its values. */
export function hasIdentities([root, , field]: Path): boolean {
  const place = String(root === 'routes' ? field : root)
  if (place === 'overrides') return !['policy', 'limit', 'mode', 'until'].includes(String(field))
  return ['allow', 'block'].includes(place)
}

/** Worded like the message about an unknown option in code. */
function unknownField(field: string, where: string, { schema }: ValueError): string {
  const { properties = {}, patternProperties } = schema
  if (patternProperties) return `${where} has the name ${quote(field)}, which is not allowed there`
  try {
    knownFields({ [field]: true }, where, Object.keys(properties))
  } catch (known) {
    if (isSluiceError(known)) return known.message
  }
  return `${where}: there is no option ${quote(field)}`
}

/** Describes the legal values of a schema. */
function legalOf(schema: TSchema): string {
  const { title, anyOf, type, minItems, maxItems } = schema
  if (title) return title
  if (anyOf) return anyOf.map((form: TSchema) => legalOf(form)).join(', or ')
  if ('const' in schema) return quote(schema.const)
  if (minItems) return `a list of ${minItems} to ${maxItems ?? 'more'} items`
  return kinds.get(type) ?? 'an object of options'
}

const kinds: ReadonlyMap<unknown, string> = new Map([
  ['integer', 'a whole number'],
  ['number', 'a number'],
  ['boolean', 'true or false'],
  ['string', 'a non-empty string'],
  ['array', 'a list'],
])

/** JSON pointers name list indexes like fields: the value distinguishes them. */
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

/** Formats a path for messages: `routes['POST /login'].policies[0].limit`. */
export function optionOf(path: Path, name = ''): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    if (!/^[A-Za-z_$][\w$]*$/.test(part)) return `${text}['${part}']`
    return text === '' ? part : `${text}.${part}`
  }, name)
}
