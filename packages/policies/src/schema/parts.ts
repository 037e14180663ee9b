import { type TProperties, type TSchema, Type } from '@sinclair/typebox'

/** A fixed set of strings. */
export function oneOf(names: readonly string[]): TSchema {
  return Type.Union(names.map((each) => Type.Literal(each)))
}

/** An object without other fields. */
export function closed(properties: TProperties, options: object = {}): TSchema {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/** Fields that may be missing. */
export function optional(properties: TProperties): TProperties {
  return Object.fromEntries(
    Object.entries(properties).map(([field, schema]) => [field, Type.Optional(schema)]),
  )
}

export const maxInteger: number = Number.MAX_SAFE_INTEGER

export function whole(minimum = 0, maximum: number = maxInteger): TSchema {
  const range = maximum === maxInteger ? `≥ ${minimum}` : `from ${minimum} to ${maximum}`
  return Type.Integer({ minimum, maximum, title: `a whole number ${range}` })
}

/** A non-empty string. */
export function text(description?: string, options: object = {}): TSchema {
  return Type.String({ minLength: 1, ...(description && { description }), ...options })
}

export const duration: TSchema = Type.Union(
  [
    Type.String({ pattern: '^[1-9]\\d{0,14}(ms|s|m|h|d|w)$' }),
    Type.Integer({ minimum: 1, maximum: maxInteger }),
  ],
  { title: `milliseconds ≥ 1, or a string such as '500ms', '10s', '15m', '1h', '1d'` },
)

export const name: TSchema = Type.String({
  pattern: '^[\\x20-\\x7e]{1,256}$',
  title: '1 to 256 printable ASCII characters',
})

/** A function of the request, defined in code. */
export const named: TSchema = closed(
  { by: text('The name of the function: `rateLimit({ values: { <name>: (req) => … } })`.') },
  { title: 'an object with the name of a function, as in { by: plan }' },
)

/** The forms that a value may have. */
export function formsOf(schema: TSchema): TSchema[] {
  return schema.anyOf
}

const keyNames = Type.Array(text(), { minItems: 1 })
export const key: TSchema = Type.Union(
  [text(), closed({ all: keyNames }), closed({ firstOf: keyNames })],
  {
    title: 'the name of a key, { all: [names] } or { firstOf: [names] }',
    description:
      'The client to count: `ip`, `route`, or a name defined in code (`rateLimit({ keys: { <name>: … } })`); `all` combines several, `firstOf` takes the first that a request has.',
    examples: ['ip', { firstOf: ['user', 'ip'] }],
  },
)

export const share: TSchema = Type.Number({ minimum: 0, maximum: 1, title: 'a number from 0 to 1' })
export const policyMode: TSchema = oneOf(['enforce', 'shadow'])
export const failureMode: TSchema = oneOf(['fallback', 'open', 'closed'])
export const cost: TSchema = Type.Union(
  [Type.Integer({ minimum: 0, maximum: maxInteger }), named],
  { title: 'a whole number ≥ 0, or { by: name }' },
)
