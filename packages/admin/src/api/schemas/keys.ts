import { Type } from '@sinclair/typebox'
import {
  closed,
  count,
  digest,
  dryRun,
  instant,
  isDryRun,
  keyReference,
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
  'Denials of the identity among the busiest keys; a span is omitted if it is not among them.',
)

const note = optional(
  Type.String({ description: 'Why nothing was found, and how to type the key.' }),
)

const leftOutWithLimit = 'Omitted with limit: without a limit there is no verdict.'

export const lookupRequest = closed({ key: keyReference })
export const lookupAnswer = open({
  digest,
  key: optional(
    Type.Record(Type.String(), Type.Union([Type.String(), Type.Integer()]), {
      description: 'Values by key name for a key requested as text, to use in actions.',
    }),
  ),
  name: optional(Type.String({ description: 'The result of reveal.' })),
  found: Type.Boolean({ description: 'True if a policy has counted or blocks it.' }),
  isAway: optional(
    Type.Boolean({
      description: 'True during an outage of the store: only denied is known, and found is true.',
    }),
  ),
  note,
  policies: Type.Array(
    open({
      policy: policyName,
      isPenalty: Type.Boolean({ description: 'True for a penalty: used are strikes.' }),
      withinMs: optional(count('For a penalty: the time (ms) in which strikes lead to a block.')),
      mode: oneOf(['enforce', 'shadow']),
      allowed: optional(
        Type.Boolean({ description: `False if a request is denied now. ${leftOutWithLimit}` }),
      ),
      limit: optional(
        Type.Union([Type.Integer(), Type.Literal('unlimited')], {
          description:
            'The limit of the policy or of an override. If it depends on the request, the limit of the last request; omitted if that is unknown here.',
        }),
      ),
      used: optional(count('Units that count now; for a bucket, its level.')),
      capacity: optional(count('For a bucket: its capacity.')),
      refillMs: optional(count('For a bucket: the time (ms) to drain as many units as the limit.')),
      remaining: optional(count(`Units left. ${leftOutWithLimit}`)),
      resetMs: optional(count('Time (ms) until the remaining units are refilled.')),
      retryAfterMs: optional(
        count('Time (ms) until a denied request is allowed. Omitted if waiting cannot help.'),
      ),
      denied,
      perWindow: optional(perWindow),
    }),
  ),
  inCode: Type.Array(
    open({ policy: policyName, denied: count('Approximate denials of the last ten minutes.') }),
    { description: 'Policies defined in code that denied it; their states cannot be looked up.' },
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
  key: keyReference,
  policy: policyName,
  limit: Type.Union([Type.Integer({ minimum: 0 }), Type.Literal('unlimited')]),
  until,
  reason,
  dryRun,
})
export const actionAnswer = open({
  digest,
  found: Type.Boolean({
    description: 'True if there was anything to change; always true for a block.',
  }),
  dryRun: isDryRun,
  note,
  policies: Type.Array(
    open({
      policy: policyName,
      found: Type.Boolean({ description: 'For a block: true if it replaced another one.' }),
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
  keys: count('Keys that were or would be reset.'),
  cursor: optional(Type.String({ description: 'Send it again to continue. Omitted at the end.' })),
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
        description: 'shadow: the policy currently refuses nothing, so denied requests passed.',
      }),
      scope: oneOf(['process', 'fleet']),
      processes: count('Number of processes in the answer.'),
      sinceMs: instant,
      total: count('The sum of all counts.'),
      floor: count('Upper bound on the count of any key outside the list.'),
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
