import { Type } from '@sinclair/typebox'
import {
  anything,
  closed,
  count,
  digest,
  dryRun,
  isDryRun,
  namedKey,
  oneOf,
  open,
  optional,
  perWindow,
  policyName,
  reason,
  text,
  until,
  version,
} from './parts.ts'

const kill = oneOf(['none', 'shadow', 'off'], {
  description: 'The kill switch: all policies in shadow mode, or off.',
})
const mode = oneOf(['enforce', 'shadow'])
const calendar = open({ every: oneOf(['day', 'week', 'month']), zone: Type.String() })
const fixedField = oneOf(['limit', 'burst', 'mode', 'share'])
const number = count('The revision of the changes.')
const refused = open(
  { version: Type.String(), message: Type.String() },
  'A version that could not be applied.',
)

/** The key of an override; its values are `…` for callers who may only read. */
const shownKey = Type.Record(Type.String(), Type.Union([Type.String(), Type.Integer()]))

const entry = open(
  {
    policy: policyName,
    field: Type.Union([fixedField, Type.Literal('override')]),
    value: anything('The current value; for an override, its key with limit, mode or both.'),
    reason: optional(Type.String()),
    until: optional(Type.String()),
    hides: optional(anything('The newer value of the file that the entry hides.')),
  },
  'A change on top of the file.',
)

const listedPolicy = open({
  name: policyName,
  routes: Type.Array(Type.String(), {
    description: 'The routes that it applies to: * for all requests.',
  }),
  algorithm: Type.String(),
  limit: anything('A number, unlimited, or an object as in the file.'),
  window: optional(Type.Union([Type.String(), Type.Number(), calendar])),
  burst: optional(Type.Integer()),
  mode,
  share: optional(Type.Number({ description: 'The share of keys for which it is enforced.' })),
  key: anything('The key that it counts, as in the file.'),
  fields: Type.Array(fixedField, { description: 'The fields that can change at run time.' }),
})

const override = open({
  policy: policyName,
  key: shownKey,
  limit: optional(Type.Union([Type.Integer(), Type.Literal('unlimited')])),
  mode: optional(mode),
  until: optional(Type.String()),
  reason: optional(Type.String()),
  origin: oneOf(['file', 'change']),
})

export const policiesAnswer = open({
  version,
  number,
  kill,
  killedBy: optional(oneOf(['environment', 'change'])),
  refused: optional(refused),
  policies: Type.Array(listedPolicy),
  overrides: Type.Array(override, {
    description: 'In file order; those of changes first.',
  }),
  entries: Type.Array(entry),
})

/** An entry to set. @sluice/policies checks the value against the file schema. */
const setEntry = closed({
  policy: policyName,
  field: Type.Union([fixedField, Type.Literal('override')]),
  value: anything(
    'The new value. For an override { key, limit, mode }, with limit, mode or both: { "key": { "tenant": "acme" }, "limit": 9 }.',
  ),
  until: optional(until),
})
const removeEntry = closed({
  policy: policyName,
  field: Type.Union([fixedField, Type.Literal('override')]),
  key: optional(namedKey),
})

export const changeRequest = closed({
  set: optional(Type.Array(setEntry, { maxItems: 100 })),
  remove: optional(Type.Array(removeEntry, { maxItems: 100 })),
  reason,
  dryRun,
})
export const rollbackRequest = closed({ version, reason, dryRun })
export const killRequest = closed({ kill, reason, dryRun })

export const difference = open({
  path: Type.String({ description: 'policies.burst.limit, routes./health, overrides, kill.' }),
  from: optional(anything('Omitted if it did not exist.')),
  to: optional(anything('Omitted if it no longer exists.')),
  newCount: Type.Boolean({ description: 'True if the policy starts a new count.' }),
})

const touched = open({
  digest,
  name: optional(Type.String()),
  perWindow,
})

const affected = open(
  {
    known: Type.Boolean(),
    why: optional(Type.String({ description: 'Why it is unknown, or what the estimate omits.' })),
    policies: Type.Array(
      open({
        policy: policyName,
        basis: oneOf(['1m', '10m', '1h']),
        scope: oneOf(['process', 'fleet']),
        processes: count('Number of visible processes.'),
        newlyDenied: Type.Array(touched),
        newlyAllowed: Type.Array(touched),
      }),
    ),
  },
  'Identities affected by the change, estimated from the busiest keys. For exact results, run a simulation.',
)

export const changeAnswer = open({
  version,
  number,
  dryRun: isDryRun,
  differences: Type.Array(difference),
  affected,
})

export const diffQuery = closed({ from: version, to: optional(version) })
export const diffAnswer = open({ from: version, to: version, differences: Type.Array(difference) })
export const exportQuery = closed({ version: optional(version) })
export const exportAnswer = open({
  version,
  text: Type.String({ description: 'A policy file in YAML.' }),
})

export const fleetAnswer = open({
  scope: oneOf(['process', 'fleet'], {
    description: 'process: the store is unavailable, or has no fleet.',
  }),
  instances: Type.Array(
    open({ id: Type.String(), version, refused: optional(refused), isThis: Type.Boolean() }),
  ),
  versions: Type.Array(open({ version, instances: count('Instances that run it.') })),
  store: optional(
    open({
      name: Type.String(),
      breaker: text('closed, half-open or open'),
      isAway: Type.Boolean(),
      keysOwed: count('Keys with units not yet reported to the store.'),
      instances: count('Processes that share the store, as last seen.'),
      clockSkewMs: Type.Number(),
      hotKeys: count('Keys for which this process takes grants.'),
      grants: open(
        {
          taken: count('Granted by the store.'),
          spent: count('Spent without a store call.'),
          returned: count('Closed before they were spent.'),
          lapsed: count('Unspent when their grant ended.'),
        },
        'Units of the grants of this process.',
      ),
      regions: Type.Array(
        open({
          region: Type.String(),
          share: Type.Number({ description: 'Guaranteed share of each limit, 0 to 1.' }),
          processes: count('Processes that reported within ten seconds.'),
          fromShare: count('Units taken from the share.'),
          borrowed: count('Units taken from the pool.'),
          held: count('Unspent units held from the pool.'),
        }),
        { description: 'Empty for a store without regions.' },
      ),
    }),
  ),
})
