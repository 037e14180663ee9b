import { type TSchema, Type } from '@sinclair/typebox'
import { closed, formsOf, maxInteger, oneOf, optional, text } from './parts.ts'

const limitNumber = Type.Integer({ minimum: 0, maximum: maxInteger, title: 'a whole number ≥ 0' })
export const fixedLimit: TSchema = Type.Union([limitNumber, Type.Literal('unlimited')], {
  title: `a whole number ≥ 0, or 'unlimited'`,
})

const weekday = oneOf(['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'])
const timeOfDay = '([01]\\d|2[0-3]):[0-5]\\d'
const clock = (latest: '23:59' | '24:00', description: string) =>
  Type.String({
    pattern: latest === '24:00' ? `^(${timeOfDay}|24:00)$` : `^${timeOfDay}$`,
    title: `a time of day from '00:00' to '${latest}'`,
    description,
  })

const rule = closed({
  ...optional({
    days: Type.Array(weekday, { minItems: 1 }),
    from: clock('23:59', 'Time of day at which the rule begins.'),
    to: clock('24:00', 'Time of day at which the rule ends.'),
  }),
  limit: fixedLimit,
})
const hours = closed(
  {
    timeZone: text('The zone whose clocks are meant, by its IANA name.', {
      examples: ['Europe/Berlin', 'UTC'],
    }),
    default: fixedLimit,
    rules: Type.Array(rule, {
      minItems: 1,
      description: 'Of several rules that apply, the first one counts.',
    }),
  },
  { description: 'A limit that depends on the time of day.' },
)
const schedule = closed({ schedule: hours }, { title: 'a schedule' })

const tierLimit = Type.Union([...formsOf(fixedLimit), schedule])
const tiered = closed(
  {
    tiers: Type.Record(text(), tierLimit, {
      additionalProperties: false,
      minProperties: 1,
      description: 'The limit of each tier.',
    }),
    by: text(
      'The name of the function that finds the tier: `rateLimit({ values: { <name>: … } })`.',
    ),
    default: fixedLimit,
  },
  { title: 'limits by tier' },
)

const found = closed(
  {
    by: text(
      'The name of a function that finds the limit, or of `adaptive(…)`: `rateLimit({ values: { <name>: … } })`.',
    ),
    default: limitNumber,
  },
  { title: 'a limit that code finds' },
)

export const limitSchema: TSchema = Type.Union([...formsOf(fixedLimit), tiered, schedule, found], {
  title: `a whole number ≥ 0, 'unlimited', or an object with tiers, schedule, or by and default`,
  description: 'Units that one key may take in any window.',
  examples: [20, 'unlimited', { tiers: { free: 600, pro: 6000 }, by: 'plan', default: 60 }],
})
