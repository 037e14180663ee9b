import { Type } from '@sinclair/typebox'
import {
  anything,
  closed,
  count,
  digest,
  dryRun,
  instant,
  isDryRun,
  oneOf,
  open,
  optional,
  policyName,
  reason,
  text,
} from './parts.ts'
import { difference } from './policies.ts'

const role = oneOf(['read', 'keys', 'policies'])

export const sessionAnswer = open({
  actor: Type.String(),
  may: Type.Array(role),
  instance: Type.String({ description: 'Identifies this process.' }),
  features: open({
    policies: Type.Boolean(),
    changes: Type.Boolean({ description: 'False without a store that keeps versions.' }),
    keys: Type.Boolean(),
    metrics: Type.Boolean(),
    queues: Type.Boolean(),
    unlock: Type.Boolean({ description: 'False if the store cannot list its keys.' }),
  }),
  keys: Type.Array(Type.String(), { description: 'Key names that can be typed.' }),
})

const results = {
  allowed: count('Requests that passed.'),
  denied: count('Requests that were denied.'),
  shadow_denied: count('Requests that passed, but that a shadow policy would have denied.'),
  queued: count('Requests accepted by a queue.'),
  skipped: count('Requests that passed uncounted.'),
  shed: count('Requests refused under load.'),
  failed_open: count('Requests that passed without the store.'),
  failed_closed: count('Requests that were refused without the store.'),
}

export const liveAnswer = open(
  {
    instance: Type.String({ description: 'The process that answers.' }),
    scope: oneOf(['fleet', 'process'], {
      description: '`process`: other processes are not visible.',
    }),
    processes: count('Processes covered by the counters.'),
    at: instant,
    since: instant,
    requests: open(results),
    policies: Type.Array(
      open({
        policy: policyName,
        allowed: count('Checks that were allowed.'),
        denied: count('Checks that were denied.'),
        shadowAllowed: count('Checks in shadow that would have been allowed.'),
        shadowDenied: count('Checks in shadow that would have been denied.'),
        fallback: count('The part of them decided by the failure mode.'),
        nearMisses: count('Allowed requests that left over 90% of the limit used.'),
        limit: optional(Type.Number()),
        windowSeconds: optional(Type.Number()),
        hotKeyShare: optional(Type.Number()),
      }),
      { description: 'Most refused first, at most 60.' },
    ),
    policiesInAll: optional(count('Policies that are or will be checked.')),
    latency: Type.Array(
      open({
        answeredBy: Type.String(),
        count: count('Decisions.'),
        sumSeconds: Type.Number(),
        buckets: Type.Array(
          open({
            le: optional(Type.Number({ description: 'Upper bound in seconds. Omitted if none.' })),
            count: count('Decisions in this bucket only.'),
          }),
        ),
      }),
    ),
    store: open({
      breaker: oneOf(['closed', 'half-open', 'open']),
      fallback: Type.Boolean({ description: 'True while failure modes decide requests.' }),
      keysOwed: count('Keys with units not yet reported to the store.'),
      instances: count('Processes that share the store, as last seen.'),
      clockSkewSeconds: Type.Number(),
      deadlinesMissed: count('Checks that the store did not answer in time.'),
      failedCalls: count('Calls to the store that failed.'),
    }),
  },
  'Counters of the fleet since the answering process started; those of other processes are a few seconds old. Gauges describe only this process. A page shows the difference between two answers of one instance.',
)

const rates = {
  checks: count('Checks of the policy.'),
  denied: count('Checks that were denied.'),
  shadowDenied: count('Checks in shadow that would have been denied.'),
  nearMisses: count('Allowed requests that left over 90% of the limit used.'),
  fallback: count('The part of them decided by the failure mode.'),
}

export const trafficAnswer = open(
  {
    at: instant,
    spanMs: count('Time (ms) that the counts cover: a minute, or less after a start.'),
    fallback: Type.Boolean({ description: 'True while failure modes decide requests.' }),
    processes: count('Processes covered by the counts.'),
    knownProcesses: count('Number of processes, as last seen.'),
    requests: count('All requests.'),
    denied: count('Requests that were refused.'),
    shadowDenied: count('Requests that passed, but that a shadow policy would have denied.'),
    nearMisses: rates.nearMisses,
    policies: Type.Array(open({ policy: policyName, ...rates }), {
      description: 'Most refused first, at most 10.',
    }),
    policiesInAll: count('Policies that were checked.'),
    p50Ms: optional(Type.Number({ description: 'Omitted if there was no decision.' })),
    p99Ms: optional(Type.Number()),
    points: Type.Array(
      Type.Array(Type.Union([Type.Number(), Type.Null()]), { minItems: 5, maxItems: 5 }),
      {
        description:
          'Every five seconds of the last 15 minutes: the time in seconds; requests, refusals, near misses and denials in shadow per second. null: a part of the fleet was not visible.',
      },
    ),
    outages: Type.Array(Type.Array(Type.Integer(), { minItems: 2, maxItems: 2 }), {
      description: 'Spans, in seconds, in which failure modes decided requests.',
    }),
  },
  'Rates of the fleet, sampled by the answering process.',
)

export const nearAnswer = open({
  at: instant,
  scope: oneOf(['fleet', 'process']),
  processes: count('Processes that count the identities.'),
  identities: Type.Array(
    open({
      policy: policyName,
      mode: oneOf(['enforce', 'shadow']),
      digest,
      name: optional(Type.String({ description: 'The result of reveal.' })),
      denied: count('Denials of the last hour.'),
      share: optional(
        Type.Number({
          description:
            'Estimated share of the limit that the identity requested in one window, from the busiest keys of the last hour: 1 is the limit. Omitted if the limit is not a single number.',
        }),
      ),
    }),
    { description: 'Nearest to a limit, or over it, first; at most 20.' },
  ),
  since: instant,
  policies: Type.Array(
    open({
      policy: policyName,
      hours: Type.Array(Type.Array(Type.Integer(), { minItems: 3, maxItems: 3 }), {
        description: 'Checks, denials and near misses of each of 24 hours from since on.',
      }),
    }),
    { description: 'Policies with traffic, most refused first; at most 50.' },
  ),
  policiesInAll: count('Policies that had traffic.'),
})

export const queuesAnswer = open({
  queues: Type.Array(
    open({
      name: Type.String(),
      isAway: Type.Boolean({
        description: 'True if its broker did not answer: then everything else is omitted.',
      }),
      depth: optional(count('Waiting and running jobs.')),
      running: optional(count('Running jobs.')),
      dead: optional(count('Dead letters.')),
      oldestMs: optional(Type.Number({ description: 'Age of the oldest open job.' })),
      inPerSecond: optional(Type.Number()),
      outPerSecond: optional(Type.Number()),
    }),
  ),
})

export const deadQuery = closed({
  offset: optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  limit: optional(Type.Integer({ minimum: 1, maximum: 100 })),
})
export const deadAnswer = open({
  queue: Type.String(),
  offset: count('Offset of the list.'),
  jobs: Type.Array(
    open({
      id: Type.String(),
      identity: Type.String({ description: 'Digest of the owner.' }),
      enqueuedAt: instant,
      attempts: count('Runs that have ended.'),
      error: optional(Type.String({ description: 'Omitted for callers who may only read.' })),
    }),
    { description: 'Newest first. Payloads are not shown.' },
  ),
})
export const deadRequest = closed({
  ids: Type.Array(Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' }), {
    minItems: 1,
    maxItems: 100,
    description: 'The jobs.',
  }),
  reason,
  dryRun,
})
export const deadActionAnswer = open({
  queue: Type.String(),
  done: Type.Array(Type.String(), { description: 'Jobs that were or would be changed.' }),
  missing: Type.Array(Type.String(), { description: 'Jobs that are not dead letters.' }),
  dryRun: isDryRun,
})

export const auditQuery = closed({ most: optional(Type.Integer({ minimum: 1, maximum: 1_000 })) })
export const auditAnswer = open({
  isAway: optional(
    Type.Boolean({ description: 'True during a store outage: newer records are unknown.' }),
  ),
  records: Type.Array(
    open({
      id: text('The records of one action have one id.'),
      at: instant,
      actor: Type.String(),
      action: Type.String({ description: 'policies.change, keys.reset, queues.retry, …' }),
      phase: oneOf(['begun', 'done', 'failed'], {
        description:
          'A change of policies has one record, done. Other actions have one before and one after.',
      }),
      reason: Type.String(),
      target: optional(
        open({
          policy: optional(policyName),
          policies: optional(Type.Array(policyName)),
          digest: optional(digest),
          kind: optional(
            Type.String({ description: 'The names of the key: user, tenant and ip.' }),
          ),
          queue: optional(Type.String()),
          version: optional(Type.String()),
        }),
      ),
      result: optional(anything('The result.')),
      before: optional(
        Type.String({
          description: 'The version before a change. A rollback to it undoes the change.',
        }),
      ),
      undone: optional(Type.String({ description: 'The later version that undid the change.' })),
      changes: optional(
        Type.Array(difference, { description: 'What changed in a version: up to 20 differences.' }),
      ),
    }),
    { description: 'Newest first.' },
  ),
})
