import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { algorithmNames, pageUrl } from '@sluice/core'
import {
  algorithms,
  besideGrants,
  countsBeyond,
  mayReserve,
  type OptionForm,
} from '@sluice/core/backend'
import type { EntryField } from '../file/policy-file.ts'
import {
  closed,
  cost,
  duration,
  failureMode,
  formsOf,
  key,
  maxInteger,
  name,
  named,
  oneOf,
  optional,
  policyMode,
  share,
  text,
  whole,
} from './parts.ts'

// The single definition of policy files: the published JSON Schema and the checks are built from
// it. A field that also exists in code takes its description from the option's docstring.

const limitNumber = Type.Integer({ minimum: 0, maximum: maxInteger, title: 'a whole number ≥ 0' })
const fixedLimit: TSchema = Type.Union([limitNumber, Type.Literal('unlimited')], {
  title: `a whole number ≥ 0, or 'unlimited'`,
})

const weekday = oneOf(['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'])
const timeOfDay = '([01]\\d|2[0-3]):[0-5]\\d'
const clock = (latest: '23:59' | '24:00') =>
  Type.String({
    pattern: latest === '24:00' ? `^(${timeOfDay}|24:00)$` : `^${timeOfDay}$`,
    title: `a time of day from '00:00' to '${latest}'`,
  })

const hoursRule = closed({
  ...optional({
    days: Type.Array(weekday, { minItems: 1 }),
    from: clock('23:59'),
    to: clock('24:00'),
  }),
  limit: fixedLimit,
})
const hours = closed(
  {
    timeZone: text(undefined, { examples: ['Europe/Berlin', 'UTC'] }),
    default: fixedLimit,
    rules: Type.Array(hoursRule, { minItems: 1 }),
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
      'The name of the function that returns the tier: `rateLimit({ values: { <name>: … } })`.',
    ),
    default: fixedLimit,
  },
  { title: 'limits by tier' },
)

const found = closed(
  {
    by: text(
      'The name of a function that returns the limit, or of `adaptive(…)`: `rateLimit({ values: { <name>: … } })`.',
    ),
    default: limitNumber,
  },
  { title: 'a limit from code' },
)

const limitSchema: TSchema = Type.Union([...formsOf(fixedLimit), tiered, schedule, found], {
  title: `a whole number ≥ 0, 'unlimited', or an object with tiers, schedule, or by and default`,
  examples: [20, 'unlimited', { tiers: { free: 600, pro: 6000 }, by: 'plan', default: 60 }],
})

/** Policy fields of every algorithm. */
const policyFields: TProperties = {
  limit: limitSchema,
  ...optional({
    headroom: Type.Number({
      minimum: 0,
      maximum: 0.5,
      title: 'a number from 0 to 0.5',
    }),
    key,
    cost,
    hidden: Type.Boolean(),
    mode: policyMode,
    enforce: Type.Union([closed({ share }), named], {
      title: '{ share: 0 to 1 }, or { by: name }',
    }),
    unit: oneOf(['requests', 'content-bytes', 'concurrent-requests']),
    failureMode,
    chargeWhen: named,
    refundWhen: named,
  }),
}

const async = closed({ maxUncounted: whole(1) })
const calendar = closed(
  {
    every: oneOf(['day', 'week', 'month']),
    zone: text(undefined, { examples: ['Europe/Rome', 'UTC'] }),
  },
  { title: '{ every: day, week or month, zone: the name of a time zone }' },
)
const reserve = Type.Union([Type.Boolean(), named], { title: 'true, false, or { by: name }' })
const windowed = {
  window: duration,
  ...optional({
    countDenied: Type.Boolean(),
    reach: oneOf(['region', 'global']),
  }),
}

/** Fields that an algorithm adds. */
function fieldsOf(name: (typeof algorithmNames)[number]): TProperties {
  const { counts, options } = algorithms[name]
  const own = Object.entries(options.fields).map(([field, form]) => [field, schemaOf(form)])
  return {
    ...(counts === 'units' && windowed),
    ...(options.hasCalendar && {
      window: Type.Union([...formsOf(duration), calendar], {
        title: `${duration.title}; or { every: month, zone: Europe/Rome }`,
      }),
    }),
    ...optional({
      ...Object.fromEntries(own),
      ...(besideGrants[name] && {
        prefetch: duration,
      }),
      ...(mayReserve(name) && { reserve }),
      ...(countsBeyond(name) && { async }),
    }),
  }
}

function schemaOf(option: OptionForm): TSchema {
  if (option.form === 'text') return Type.Literal(option.text)
  return option.form === 'units' ? whole(option.min) : duration
}

function variants(own: TProperties): TSchema[] {
  // The first algorithm applies to policies that name none.
  return algorithmNames.map((algorithm, index) => {
    const literal = Type.Literal(algorithm)
    return closed({
      ...own,
      algorithm: index === 0 ? Type.Optional(literal) : literal,
      ...policyFields,
      ...fieldsOf(algorithm),
    })
  })
}

export const policySchema: TSchema = Type.Union(variants({ name }), {
  title: 'a policy, as in { name: burst, limit: 20, window: 1s }',
  examples: [{ name: 'burst', limit: 20, window: '1s' }],
})

const profileSchema: TSchema = Type.Union(variants({}), {
  title: 'a policy without a name, as in { limit: 20, window: 1s }',
})

export const untilSchema: TSchema = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,3})?)?(Z|[+-]\\d\\d:\\d\\d)$',
  title: 'a time with its zone, such as 2026-12-31T23:59:59Z or 2026-12-31T23:59:59+01:00',
  description: 'Time at which it expires.',
  examples: ['2026-12-31T23:59:59Z'],
})

const identity = Type.Union([text(), Type.Integer()], { title: 'an identity, or a pattern with *' })
const override = closed(
  {
    policy: text('The name of the policy.'),
    key: Type.Record(text(), identity, {
      additionalProperties: false,
      minProperties: 1,
      description:
        'The identity: values by key name. `*` matches any text. Of several overrides, an exact one wins over a pattern, a longer literal prefix over a shorter one, then the first.',
      examples: [{ tenant: 'acme' }, { tenant: 'acme-*' }],
    }),
    ...optional({
      limit: fixedLimit,
      mode: policyMode,
      until: untilSchema,
      reason: Type.String({ description: 'The reason, for later readers.' }),
    }),
  },
  { examples: [{ policy: 'sustained', key: { tenant: 'acme' }, limit: 20000 }] },
)

const list = closed(
  optional({
    ips: Type.Array(Type.String()),
    keys: Type.Array(text()),
  }),
)

const penaltyFields = optional({
  name,
  hidden: Type.Boolean(),
  key,
})
const penalty = Type.Union(
  [
    closed({
      ...penaltyFields,
      after: whole(1, 1_000_000),
      within: duration,
      for: duration,
      ...optional({
        factor: Type.Number({ minimum: 1 }),
        max: duration,
        thenReset: Type.Boolean(),
      }),
    }),
    closed({ ...penaltyFields, after: Type.Literal('never') }),
    Type.Literal(false),
  ],
  { title: 'a penalty, as in { after: 10, within: 1m, for: 5m }, or false' },
)

const dialects = [
  ...['draft-11', 'draft-10', 'draft-9', 'draft-8', 'draft-7', 'draft-6'],
  ...['legacy', 'legacy-delta', 'legacy-github'],
]

/** Settings for all requests, or for the requests of a route. */
const settings: TProperties = optional({
  key,
  cost,
  skip: named,
  chargeWhen: named,
  refundWhen: named,
  penalty,
  onMissingKey: oneOf(['ip', 'skip', 'deny', 'error']),
  preflights: oneOf(['pass', 'count']),
  headers: Type.Array(oneOf(dialects)),
  exposeHeaders: Type.Boolean(),
  hideOnRedirect: Type.Boolean(),
  retryJitter: share,
  maxWaiting: whole(),
  statusCode: whole(400, 599),
  message: Type.Union([Type.String(), Type.Record(Type.String(), Type.Unknown())], {
    title: 'a string or an object',
  }),
  idempotencyKey: Type.Union([Type.Boolean(), ...formsOf(key)], {
    title: 'true, false, or a key',
  }),
  allow: list,
  block: list,
  failureMode,
  deadlineMs: whole(1, 60_000),
  instances: whole(1, 1_000_000),
})

const policyOrName = Type.Union([text(), ...formsOf(policySchema)])
const route = Type.Union(
  [
    closed({
      ...settings,
      ...optional({
        combine: oneOf(['replace', 'add']),
        policies: Type.Array(policyOrName, {
          minItems: 1,
          maxItems: 64,
          description: 'Policies of the route, or their names.',
        }),
      }),
    }),
    text('The name of a policy.'),
    Type.Literal(false, { description: 'No limits.' }),
  ],
  { title: 'an object with policies, the name of a policy, or false' },
)
const routeName = Type.String({
  pattern: '^([A-Z][A-Z-]* +)?(/\\S*|\\*)$',
  title: `a path, or a method and a path: '/health', 'POST /login'`,
})

export const fileSchema: TSchema = closed(
  optional({
    $schema: Type.String(),
    policies: Type.Array(policySchema, {
      minItems: 1,
      maxItems: 64,
    }),
    profiles: Type.Record(name, profileSchema, { additionalProperties: false }),
    routes: Type.Record(routeName, route, {
      additionalProperties: false,
      maxProperties: 1_000,
      title: 'an object of at most 1000 routes',
    }),
    overrides: Type.Array(override, { description: 'Different limits for single identities.' }),
    ...settings,
  }),
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Sluice policies',
    description: `Rate limits of an HTTP API: ${pageUrl('policies')} explains the fields.`,
    examples: [
      { policies: [{ name: 'burst', limit: 20, window: '1s' }], routes: { '/health': false } },
    ],
  },
)

/** Values that may change while the application runs, by field. */
export const entryValues: Readonly<Record<EntryField, TSchema>> = {
  limit: limitSchema,
  burst: whole(1),
  mode: policyMode,
  share,
  override,
}
