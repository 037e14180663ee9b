import { type TSchema, Type } from '@sinclair/typebox'
import { closed, formsOf, maxInteger, oneOf } from './parts.ts'

const limitNumber = Type.Integer({ minimum: 0, maximum: maxInteger, title: 'a whole number ≥ 0' })
export const fixedLimit: TSchema = Type.Union([limitNumber, Type.Literal('unlimited')], {
  title: `a whole number ≥ 0, or 'unlimited'`,
})

const weekday = oneOf(['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'], {})
const clock = (latest: string, description: string) =>
  Type.String({
    pattern:
      latest === '24:00' ? '^(([01]\\d|2[0-3]):[0-5]\\d|24:00)$' : '^([01]\\d|2[0-3]):[0-5]\\d$',
    title: `a time of day from '00:00' to '${latest}'`,
    description,
  })

const schedule = closed(
  {
    schedule: closed(
      {
        timeZone: Type.String({
          minLength: 1,
          description: 'The zone whose clocks are meant, by its IANA name.',
          examples: ['Europe/Berlin', 'UTC'],
        }),
        default: fixedLimit,
        rules: Type.Array(
          closed({
            days: Type.Optional(Type.Array(weekday, { minItems: 1 })),
            from: Type.Optional(clock('23:59', 'Time of day at which the rule begins.')),
            to: Type.Optional(clock('24:00', 'Time of day at which the rule ends.')),
            limit: fixedLimit,
          }),
          { minItems: 1, description: 'Of several rules that apply, the first one counts.' },
        ),
      },
      { description: 'A limit that depends on the time of day.' },
    ),
  },
  { title: 'a schedule' },
)

const tierTable = Type.Record(
  Type.String({ minLength: 1 }),
  Type.Union([...formsOf(fixedLimit), schedule]),
  {
    additionalProperties: false,
    minProperties: 1,
    description: 'The limit of each tier.',
  },
)

const tiered = closed(
  {
    tiers: tierTable,
    by: Type.String({
      minLength: 1,
      description:
        'The name of the function that finds the tier: `rateLimit({ values: { <name>: … } })`.',
    }),
    default: fixedLimit,
  },
  { title: 'limits by tier' },
)

const found = closed(
  {
    by: Type.String({
      minLength: 1,
      description:
        'The name of a function that finds the limit, or of `adaptive(…)`: `rateLimit({ values: { <name>: … } })`.',
    }),
    default: limitNumber,
  },
  { title: 'a limit that code finds' },
)

export const limitSchema: TSchema = Type.Union([...formsOf(fixedLimit), tiered, schedule, found], {
  title: `a whole number ≥ 0, 'unlimited', or an object with tiers, schedule, or by and default`,
  description: 'Units that one key may take in any window.',
  examples: [20, 'unlimited', { tiers: { free: 600, pro: 6000 }, by: 'plan', default: 60 }],
})
