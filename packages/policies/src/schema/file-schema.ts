import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { pageUrl } from '@sluice/core'
import type { EntryField } from '../file/policy-file.ts'
import { fixedLimit, limitSchema } from './limit-schema.ts'
import {
  closed,
  cost,
  duration,
  failureMode,
  flag,
  formsOf,
  key,
  name,
  named,
  oneOf,
  optional,
  policyMode,
  share,
  text,
  whole,
} from './parts.ts'
import { policySchema, profileSchema, settlement } from './policy-schema.ts'

// The one definition of policy files: the published JSON Schema and the checks are made of it.

const until = Type.String({
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
      until,
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

export const untilSchema: TSchema = until
