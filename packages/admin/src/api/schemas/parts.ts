import {
  type SchemaOptions,
  type TLiteral,
  type TObject,
  type TProperties,
  type TUnion,
  Type,
} from '@sinclair/typebox'
import { pageUrl } from '@sluice/core'

/** An object without other fields. */
export function closed<Fields extends TProperties>(
  fields: Fields,
  description?: string,
): TObject<Fields> {
  return Type.Object(fields, { additionalProperties: false, ...(description && { description }) })
}

/** An object in an answer: later versions may add fields. */
export function open<Fields extends TProperties>(
  fields: Fields,
  description?: string,
): TObject<Fields> {
  return Type.Object(fields, description === undefined ? {} : { description })
}

export function text(description: string, maxLength = 256) {
  return Type.String({ minLength: 1, maxLength, description })
}

export function count(description: string) {
  return Type.Integer({ minimum: 0, description })
}

export function oneOf<const Texts extends string>(
  texts: readonly Texts[],
  options?: SchemaOptions,
): TUnion<TLiteral<Texts>[]> {
  return Type.Union(
    texts.map((each) => Type.Literal(each)),
    options,
  )
}

export function anything(description: string) {
  return Type.Unknown({ description })
}

export const optional: typeof Type.Optional = Type.Optional

export const policyName = text('The name of a policy.')
export const version = text('A version of the policies: file hash and revision of the changes.')
export const perWindow = Type.Number({
  description: 'Estimated units that it requested in one window of the policy.',
})
export const instant = Type.Integer({ description: 'Milliseconds since 1970.' })
export const digest = Type.String({
  pattern: '^[A-Za-z0-9_-]{22}$',
  description: 'The digest of an identity, as in Redis keys and in the denial log.',
})
export const dryRun = Type.Optional(
  Type.Boolean({ description: 'Only returns what would change. Default: false.' }),
)
export const isDryRun = Type.Boolean({ description: 'True if nothing was changed.' })

/** The note of an action. `isNoteText` checks its characters, as for policy changes. */
export const reason = Type.String({
  minLength: 1,
  maxLength: 500,
  title: 'one line of 1 to 500 visible characters',
  description: 'The reason, for the audit trail.',
})

export const until = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,3})?)?(Z|[+-]\\d\\d:\\d\\d)$',
  title: 'a time with its zone, such as 2026-12-31T23:59:59Z',
  description: 'Time at which it expires.',
})

/** Values by key name, as in overrides. */
export const namedKey = Type.Record(
  Type.String({ minLength: 1, maxLength: 64 }),
  Type.Union([Type.String({ minLength: 1, maxLength: 16_384 }), Type.Integer()]),
  {
    additionalProperties: false,
    minProperties: 1,
    maxProperties: 8,
    description: 'Values by key name: { "tenant": "acme" }.',
    examples: [{ tenant: 'acme' }],
  },
)

/** An identity, in one of three forms. */
export const keyReference = Type.Union(
  [
    Type.String({
      minLength: 1,
      maxLength: 16_384,
      description:
        'Text: "user ada", "ip 203.0.113.9", "tenant acme, ip 203.0.113.9" for a combined key, "@user/ada" as keys are shown, or a digest. A lookup also accepts a bare value: "ada".',
    }),
    closed({ digest }, 'The digest of an identity.'),
    namedKey,
  ],
  {
    title: 'a key as text, an object with a digest, or values by key name',
    description: 'The identity concerned.',
    examples: ['user ada', { digest: 'q83vEjRWeJCrze8SNFZ4kA' }, { tenant: 'acme' }],
  },
)

export const problem = open(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: optional(Type.String({ description: 'What is wrong, and how to fix it.' })),
    code: optional(
      Type.String({ description: `The code of the error: ${pageUrl('errors')} lists them.` }),
    ),
  },
  'Why a request was refused (RFC 9457).',
)
