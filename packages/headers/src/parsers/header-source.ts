/**
 * `Headers`, or anything else that looks names up in any case. A value that is neither text nor a
 * list of texts counts as absent.
 */
export interface HeaderReader {
  get(name: string): unknown
}

/** Header values by name in any case, such as Node's `message.headers`. */
export type HeaderRecord = Readonly<Record<string, string | readonly string[] | undefined>>

/** Headers of a response: those of fetch, or an object of names and values. */
export type HeaderSource = HeaderReader | HeaderRecord

/**
 * The value of a field, several lines joined as RFC 9110 §5.3 says; `undefined` when the field is
 * absent.
 */
export type FieldLookup = (name: string) => string | undefined

export function fieldLookup(source: HeaderSource): FieldLookup {
  if (isReader(source)) return (name) => fieldText(source.get(name))
  const fields = new Map<string, string>()
  for (const [name, value] of Object.entries(source)) {
    const key = name.toLowerCase()
    const text = fieldText(value)
    const earlier = fields.get(key)
    if (text !== undefined) fields.set(key, earlier === undefined ? text : `${earlier}, ${text}`)
  }
  return (name) => fields.get(name.toLowerCase())
}

function isReader(source: HeaderSource): source is HeaderReader {
  return typeof source.get === 'function'
}

function fieldText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.filter((line) => typeof line === 'string').join(', ')
  return typeof value === 'number' ? String(value) : undefined
}
