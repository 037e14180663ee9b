import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { pageUrl } from '@sluice/core'
import type { EntryField } from '../policy-file.ts'
import { fixedLimit, limitSchema } from './limit-schema.ts'
import {
  closed,
  cost,
  duration,
  failureMode,
  formsOf,
  key,
  name,
  named,
  oneOf,
  policyMode,
  share,
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

const override = closed(
  {
    policy: Type.String({ minLength: 1, description: 'The name of the policy.' }),
    key: Type.Record(
      Type.String({ minLength: 1 }),
      Type.Union([Type.String({ minLength: 1 }), Type.Integer()], {
        title: 'an identity, or a pattern with *',
      }),
      {
        additionalProperties: false,
        minProperties: 1,
        description:
          'Who is meant: values by the names of keys. `*` stands for any text. Of several overrides an exact one counts before a pattern, a longer literal prefix before a shorter one, then the first.',
        examples: [{ tenant: 'acme' }, { tenant: 'acme-*' }],
      },
    ),
    limit: Type.Optional(fixedLimit),
    mode: Type.Optional(policyMode),
    until: Type.Optional(until),
    reason: Type.Optional(Type.String({ description: 'Why, for those who read it later.' })),
  },
  { examples: [{ policy: 'sustained', key: { tenant: 'acme' }, limit: 20000 }] },
)

const list = closed({
  ips: Type.Optional(Type.Array(Type.String(), { description: 'Addresses and networks.' })),
  keys: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description: 'Keys, as `limiter.reset` takes them.',
    }),
  ),
})

const penaltyFields = {
  name: Type.Optional(name('The name that blocked clients are told.')),
  hidden: Type.Optional(Type.Boolean()),
  key: Type.Optional(key),
}
const penalty = Type.Union(
  [
    closed({
      ...penaltyFields,
      after: whole('The number of denials that lead to a block.', 1, 1_000_000),
      within: duration('In which time.'),
      for: duration('The duration of the first block.'),
      factor: Type.Optional(Type.Number({ minimum: 1 })),
      max: Type.Optional(duration('The longest block.')),
      thenReset: Type.Optional(
        Type.Boolean({ description: 'Clears the policies of the key, so that it begins anew.' }),
      ),
    }),
    closed({ ...penaltyFields, after: Type.Literal('never') }),
    Type.Literal(false),
  ],
  { title: 'a penalty, as in { after: 10, within: 1m, for: 5m }, or false' },
)

const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

const dialects = [
  'draft-11',
  'draft-10',
  'draft-9',
  'draft-8',
  'draft-7',
  'draft-6',
  'legacy',
  'legacy-delta',
] as const

/** Settings that stand for all requests, or for those of a route. */
const settings: TProperties = {
  key: Type.Optional(key),
  cost: Type.Optional(cost),
  skip: Type.Optional(named('Requests that pass uncounted.')),
  ...settlement,
  penalty: Type.Optional(penalty),
  onMissingKey: Type.Optional(
    oneOf(['ip', 'skip', 'deny', 'error'], {
      description: 'The treatment of a request without a key.',
    }),
  ),
  preflights: Type.Optional(
    oneOf(['pass', 'count'], {
      description:
        "'count': CORS preflights count as other requests do. 'pass': they pass, and whatever runs for OPTIONS is not limited.",
    }),
  ),
  headers: Type.Optional(
    Type.Array(oneOf(dialects, {}), { description: 'The rate-limit headers to send.' }),
  ),
  exposeHeaders: flag('Lists the headers in Access-Control-Expose-Headers.'),
  hideOnRedirect: flag('Takes the headers off a redirect.'),
  githubExtras: flag('Adds X-RateLimit-Used and X-RateLimit-Resource.'),
  retryJitter: Type.Optional(share),
  maxWaiting: Type.Optional(whole('The most requests that are held at once in a process.')),
  statusCode: Type.Optional(whole('The status of a refused request.', 400, 599)),
  message: Type.Optional(
    Type.Union([Type.String(), Type.Record(Type.String(), Type.Unknown())], {
      title: 'a text or an object',
      description: 'Replaces the problem body of a refused request.',
    }),
  ),
  idempotencyKey: Type.Optional(
    Type.Union([Type.Boolean(), ...formsOf(key)], {
      title: 'true, false, or a key',
      description: 'The key that a client sends again with a retry.',
    }),
  ),
  idempotentRetries: Type.Optional(whole('Retries with one key that are free.', 1, 100)),
  allow: Type.Optional(list),
  block: Type.Optional(list),
  failureMode: Type.Optional(failureMode),
  deadlineMs: Type.Optional(
    whole('The longest that a request waits for the store, in ms.', 1, 60_000),
  ),
  instances: Type.Optional(whole('The number of processes that share the limits.', 1, 1_000_000)),
}

const route = Type.Union(
  [
    closed({
      ...settings,
      combine: Type.Optional(oneOf(['replace', 'add'], {})),
      policies: Type.Optional(
        Type.Array(Type.Union([Type.String({ minLength: 1 }), ...formsOf(policySchema)]), {
          minItems: 1,
          maxItems: 64,
          description: 'Policies of the route, and names of policies.',
        }),
      ),
    }),
    Type.String({ minLength: 1, description: 'The name of a policy.' }),
    Type.Literal(false, { description: 'No limits.' }),
  ],
  { title: 'an object with policies, the name of a policy, or false' },
)

export const fileSchema: TSchema = closed(
  {
    $schema: Type.Optional(Type.String()),
    policies: Type.Optional(
      Type.Array(policySchema, {
        minItems: 1,
        maxItems: 64,
        description: 'The quotas of every request: decided together, all or nothing.',
      }),
    ),
    profiles: Type.Optional(
      Type.Record(name('The name of the policy.'), profileSchema, {
        additionalProperties: false,
        description: 'Policies by name, which count only where routes name them.',
      }),
    ),
    routes: Type.Optional(
      Type.Record(
        Type.String({
          pattern: '^([A-Z][A-Z-]* +)?(/\\S*|\\*)$',
          title: `a path, or a method and a path: '/health', 'POST /login'`,
        }),
        route,
        {
          additionalProperties: false,
          maxProperties: 1_000,
          title: 'an object of at most 1000 routes',
          description: 'Limits for some requests, by method and path.',
        },
      ),
    ),
    overrides: Type.Optional(
      Type.Array(override, { description: 'Other limits for single identities.' }),
    ),
    ...settings,
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Policies of Sluice',
    description: `Rate limits of an HTTP API: ${pageUrl('policies')} explains the fields.`,
    examples: [
      {
        policies: [{ name: 'burst', limit: 20, window: '1s' }],
        routes: { '/health': false },
      },
    ],
  },
)

/** The values that may change while the application runs, by the field of an entry. */
export const entryValues: Readonly<Record<EntryField, TSchema>> = {
  limit: limitSchema,
  burst: whole('Units that may be taken at once after a pause.', 1),
  mode: policyMode,
  share: share,
  override: override,
}

export const untilSchema: TSchema = until
