import { Type } from '@sinclair/typebox'
import {
  closed,
  count,
  digest,
  dryRun,
  instant,
  isDryRun,
  keyReference,
  namedKey,
  oneOf,
  open,
  optional,
  perWindow,
  policyName,
  reason,
  text,
  until,
} from './parts.ts'

const denied = open(
  {
    '1m': optional(count('Denials of the last minute, and of up to one more.')),
    '10m': optional(count('Denials of the last ten minutes, and of up to one more.')),
    '1h': optional(count('Denials of the last hour, and of up to eleven minutes more.')),
  },
  'Denials of the identity as the busiest keys have them; a span is left out where it is not among those.',
)

const note = optional(
  Type.String({ description: 'Why nothing was found: how the key has to be typed.' }),
)

const leftOutWithLimit = 'Left out with limit: without a limit there is no verdict.'

export const lookupRequest = closed({ key: keyReference })
export const lookupAnswer = open({
  digest,
  key: optional(
    Type.Record(Type.String(), Type.Union([Type.String(), Type.Integer()]), {
      description: 'Values by the names of a key that was asked for by a text: actions take them.',
    }),
  ),
  name: optional(Type.String({ description: 'What reveal yields.' })),
  found: Type.Boolean({ description: 'True if some policy has counted it, or blocks it.' }),
  isAway: optional(
    Type.Boolean({
      description: 'True while the store is away: then denied alone is known, and found is true.',
    }),
  ),
  note,
  policies: Type.Array(
    open({
      policy: policyName,
      isPenalty: Type.Boolean({ description: 'True for a penalty: used are strikes.' }),
      withinMs: optional(count('Of a penalty: the time (ms) in which strikes lead to a block.')),
      mode: oneOf(['enforce', 'shadow']),
      allowed: optional(
        Type.Boolean({ description: `False if a request is denied now. ${leftOutWithLimit}` }),
      ),
      limit: optional(
        Type.Union([Type.Integer(), Type.Literal('unlimited')], {
          description:
            'The limit of the policy, or that of an override. If it depends on the request: the limit of the last request. Left out: it depends on the request, and is not known here.',
        }),
      ),
      used: optional(count('Units that count now. Of a bucket: its level.')),
      capacity: optional(count('Of a bucket: the units that it holds.')),
      refillMs: optional(count('Of a bucket: the time (ms) in which as many as the limit drain.')),
      remaining: optional(count(`Units left. ${leftOutWithLimit}`)),
      resetMs: optional(count('Time (ms) until what remains is refilled.')),
      retryAfterMs: optional(
        count('Time (ms) until a denied request is allowed. Left out: waiting cannot help.'),
      ),
      denied,
      perWindow: optional(perWindow),
    }),
  ),
  inCode: Type.Array(
    open({ policy: policyName, denied: count('Denials of the last ten minutes, about.') }),
    { description: 'Policies that stand in code and denied it: no look-up reads their states.' },
  ),
})

export const resetRequest = closed({
  key: keyReference,
  policies: optional(Type.Array(policyName, { minItems: 1, maxItems: 100 })),
  reason,
  dryRun,
})
export const blockRequest = closed({
  key: keyReference,
  for: Type.Union([text(`Such as '1h'.`, 32), Type.Integer({ minimum: 1 })], {
    title: `a duration such as '1h', or milliseconds`,
  }),
  reason,
  dryRun,
})
export const unblockRequest = closed({ key: keyReference, reason, dryRun })
export const temporaryLimitRequest = closed({
  key: namedKey,
  policy: policyName,
  limit: Type.Union([Type.Integer({ minimum: 0 }), Type.Literal('unlimited')]),
  until,
  reason,
  dryRun,
})
export const actionAnswer = open({
  digest,
  found: Type.Boolean({
    description: 'True if there was anything to change. Of a block: always true.',
  }),
  dryRun: isDryRun,
  note,
  policies: Type.Array(
    open({
      policy: policyName,
      found: Type.Boolean({ description: 'Of a block: true if it took the place of another one.' }),
      until: optional(instant),
    }),
  ),
})

export const unlockRequest = closed({
  policy: policyName,
  cursor: optional(text('Where the last answer ended.', 512)),
  reason,
  dryRun,
})
export const unlockAnswer = open({
  policy: policyName,
  keys: count('Keys that were forgotten, or would be.'),
  cursor: optional(Type.String({ description: 'Send it again to go on. Left out: all are done.' })),
  dryRun: isDryRun,
})

const by = oneOf(['asked', 'denied', 'cost'])
const window = oneOf(['1m', '10m', '1h'])

export const topQuery = closed({
  policy: optional(policyName),
  by: optional(by),
  window: optional(window),
  most: optional(Type.Integer({ minimum: 1, maximum: 100 })),
})
export const topAnswer = open({
  by,
  window,
  lists: Type.Array(
    open({
      policy: policyName,
      mode: oneOf(['enforce', 'shadow'], {
        description: 'shadow: the policy refuses nothing now, so denials were let through.',
      }),
      scope: oneOf(['process', 'fleet']),
      processes: count('Number of processes in the answer.'),
      sinceMs: instant,
      total: count('All counts together.'),
      floor: count('The most that a key outside the list may have been counted.'),
      keys: Type.Array(
        open({
          digest,
          name: optional(Type.String()),
          count: count('Never below the true count.'),
          error: count(`Upper bound of the count's error.`),
        }),
      ),
    }),
  ),
})
