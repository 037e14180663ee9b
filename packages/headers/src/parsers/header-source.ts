/**
 * `Headers`, or anything else with case-insensitive look-up. A value that is neither a string nor a
 * list of strings counts as absent.
 */
export interface HeaderReader {
  get(name: string): unknown
}

/** Header values by case-insensitive name, such as Node's `message.headers`. */
export type HeaderRecord = Readonly<Record<string, string | readonly string[] | undefined>>

/** Headers of a response: fetch `Headers`, or an object of names and values. */
export type HeaderSource = HeaderReader | HeaderRecord

/**
 * Returns the value of a field, with several lines joined as in RFC 9110 §5.3; `undefined` if it is
 * absent.
 */
export type FieldLookup = (name: string) => string | undefined

export function fieldLookup(source: HeaderSource): FieldLookup {
  if (isReader(source)) return (name) => fieldText(source.get(name))
  const fields = new Map<string, (string | undefined)[]>()
  for (const [name, value] of Object.entries(source)) {
    const key = name.toLowerCase()
    fields.set(key, [...(fields.get(key) ?? []), fieldText(value)])
  }
  return (name) => fieldText(fields.get(name.toLowerCase()))
}

function isReader(source: HeaderSource): source is HeaderReader {
  return typeof source.get === 'function'
}

function fieldText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.filter((line) => typeof line === 'string').join(', ')
  return typeof value === 'number' ? String(value) : undefined
}
