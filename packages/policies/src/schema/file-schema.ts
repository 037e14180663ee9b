import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { algorithmNames, pageUrl } from '@sluice/core'
import { algorithms, besideGrants, countsBeyond, type OptionForm } from '@sluice/core/backend'
import type { EntryField } from '../file/policy-file.ts'
import {
  closed,
  cost,
  duration,
  failureMode,
  flag,
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

// The one definition of policy files: the published JSON Schema and the checks are made of it.

const limitNumber = Type.Integer({ minimum: 0, maximum: maxInteger, title: 'a whole number ≥ 0' })
const fixedLimit: TSchema = Type.Union([limitNumber, Type.Literal('unlimited')], {
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

const hoursRule = closed({
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
    rules: Type.Array(hoursRule, {
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

const limitSchema: TSchema = Type.Union([...formsOf(fixedLimit), tiered, schedule, found], {
  title: `a whole number ≥ 0, 'unlimited', or an object with tiers, schedule, or by and default`,
  description: 'Units that one key may take in any window.',
  examples: [20, 'unlimited', { tiers: { free: 600, pro: 6000 }, by: 'plan', default: 60 }],
})

/** The options that say when units are given back. */
const settlement: TProperties = {
  chargeWhen: named('Gives units back unless this function of request and response is true.'),
  refundWhen: named('Gives units back when this function of request and response is true.'),
}

/** Fields of a policy that every algorithm has. */
const policyFields: TProperties = {
  limit: limitSchema,
  ...optional({
    headroom: Type.Number({
      minimum: 0,
      maximum: 0.5,
      title: 'a number from 0 to 0.5',
      description: 'The share of the limit that is left free.',
    }),
    key,
    cost,
    hidden: flag('Enforced, and never named in a response.'),
    mode: policyMode,
    enforce: Type.Union([closed({ share }), named('')], {
      title: '{ share: 0 to 1 }, or { by: name }',
      description: 'For whom the policy is enforced; for everybody else it is in shadow.',
    }),
    unit: oneOf(
      ['requests', 'content-bytes', 'concurrent-requests'],
      'The unit that clients are told.',
    ),
    failureMode,
    ...settlement,
  }),
}

const async = closed(
  { maxUncounted: whole('Units of a key that one process may admit before they count.', 1) },
  { description: 'Decides by the last known state of a key, and tells the store afterwards.' },
)
const windowed = {
  window: duration(`Length of the window: milliseconds, or a text such as '10s'.`),
  ...optional({
    countDenied: flag('Charges this policy for every denied request too.'),
    reach: oneOf(['region', 'global'], 'The place where a store with regions decides.'),
  }),
}

/** The fields that an algorithm adds. */
function fieldsOf(name: (typeof algorithmNames)[number]): TProperties {
  const { counts, options } = algorithms[name]
  const own = Object.entries(options.fields).map(([field, form]) => [field, schemaOf(form)])
  return {
    ...(counts === 'units' && windowed),
    ...optional({
      ...Object.fromEntries(own),
      ...(besideGrants[name] && {
        prefetch: duration('Life of the grants that a process takes for hot keys.'),
      }),
      ...(countsBeyond(name) && { async }),
    }),
  }
}

function schemaOf(option: OptionForm): TSchema {
  if (option.form === 'text') return Type.Literal(option.text)
  return option.form === 'units' ? whole(option.about, option.min) : duration(option.about)
}

function variants(own: TProperties): TSchema[] {
  // The first algorithm stands for policies that name none.
  return algorithmNames.map((algorithm, index) => {
    const literal = Type.Literal(algorithm, { description: 'The algorithm that counts.' })
    return closed({
      ...own,
      algorithm: index === 0 ? Type.Optional(literal) : literal,
      ...policyFields,
      ...fieldsOf(algorithm),
    })
  })
}

export const policySchema: TSchema = Type.Union(
  variants({ name: name('The name of the quota, in headers, metrics and keys.') }),
  {
    title: 'a policy, as in { name: burst, limit: 20, window: 1s }',
    examples: [{ name: 'burst', limit: 20, window: '1s' }],
  },
)

const profileSchema: TSchema = Type.Union(variants({}), {
  title: 'a policy without a name, as in { limit: 20, window: 1s }',
})

export const untilSchema: TSchema = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,3})?)?(Z|[+-]\\d\\d:\\d\\d)$',
  title: 'a time with its zone, such as 2026-12-31T23:59:59Z or 2026-12-31T23:59:59+01:00',
  description: 'When it ends by itself.',
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
        'Who is meant: values by the names of keys. `*` stands for any text. Of several overrides an exact one counts before a pattern, a longer literal prefix before a shorter one, then the first.',
      examples: [{ tenant: 'acme' }, { tenant: 'acme-*' }],
    }),
    ...optional({
      limit: fixedLimit,
      mode: policyMode,
      until: untilSchema,
      reason: Type.String({ description: 'Why, for those who read it later.' }),
    }),
  },
  { examples: [{ policy: 'sustained', key: { tenant: 'acme' }, limit: 20000 }] },
)

const list = closed(
  optional({
    ips: Type.Array(Type.String(), { description: 'Addresses and networks.' }),
    keys: Type.Array(text(), { description: 'Keys, as `limiter.reset` takes them.' }),
  }),
)

const penaltyFields = optional({
  name: name('The name that blocked clients are told.'),
  hidden: Type.Boolean(),
  key,
})
const penalty = Type.Union(
  [
    closed({
      ...penaltyFields,
      after: whole('The number of denials that lead to a block.', 1, 1_000_000),
      within: duration('In which time.'),
      for: duration('The duration of the first block.'),
      ...optional({
        factor: Type.Number({ minimum: 1 }),
        max: duration('The longest block.'),
        thenReset: flag('Clears the policies of the key, so that it begins anew.'),
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

/** Settings that stand for all requests, or for those of a route. */
const settings: TProperties = optional({
  key,
  cost,
  skip: named('Requests that pass uncounted.'),
  ...settlement,
  penalty,
  onMissingKey: oneOf(['ip', 'skip', 'deny', 'error'], 'The treatment of a request without a key.'),
  preflights: oneOf(
    ['pass', 'count'],
    "'count': CORS preflights count as other requests do. 'pass': they pass, and whatever runs for OPTIONS is not limited.",
  ),
  headers: Type.Array(oneOf(dialects), { description: 'The rate-limit headers to send.' }),
  exposeHeaders: flag('Lists the headers in Access-Control-Expose-Headers.'),
  hideOnRedirect: flag('Takes the headers off a redirect.'),
  retryJitter: share,
  maxWaiting: whole('The most requests that are held at once in a process.'),
  statusCode: whole('The status of a refused request.', 400, 599),
  message: Type.Union([Type.String(), Type.Record(Type.String(), Type.Unknown())], {
    title: 'a text or an object',
    description: 'Replaces the problem body of a refused request.',
  }),
  idempotencyKey: Type.Union([Type.Boolean(), ...formsOf(key)], {
    title: 'true, false, or a key',
    description: 'The key that a client sends again with a retry.',
  }),
  allow: list,
  block: list,
  failureMode,
  deadlineMs: whole('The longest that a request waits for the store, in ms.', 1, 60_000),
  instances: whole('The number of processes that share the limits.', 1, 1_000_000),
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
          description: 'Policies of the route, and names of policies.',
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
      description: 'The quotas of every request: decided together, all or nothing.',
    }),
    profiles: Type.Record(name('The name of the policy.'), profileSchema, {
      additionalProperties: false,
      description: 'Policies by name, which count only where routes name them.',
    }),
    routes: Type.Record(routeName, route, {
      additionalProperties: false,
      maxProperties: 1_000,
      title: 'an object of at most 1000 routes',
      description: 'Limits for some requests, by method and path.',
    }),
    overrides: Type.Array(override, { description: 'Other limits for single identities.' }),
    ...settings,
  }),
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Policies of Sluice',
    description: `Rate limits of an HTTP API: ${pageUrl('policies')} explains the fields.`,
    examples: [
      { policies: [{ name: 'burst', limit: 20, window: '1s' }], routes: { '/health': false } },
    ],
  },
)

/** The values that may change while the application runs, by the field of an entry. */
export const entryValues: Readonly<Record<EntryField, TSchema>> = {
  limit: limitSchema,
  burst: whole('Units that may be taken at once after a pause.', 1),
  mode: policyMode,
  share,
  override,
}
