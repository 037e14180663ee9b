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
  instance: Type.String({ description: 'Tells this process from others.' }),
  features: open({
    policies: Type.Boolean(),
    changes: Type.Boolean({ description: 'False without a store that keeps versions.' }),
    keys: Type.Boolean(),
    metrics: Type.Boolean(),
    queues: Type.Boolean(),
    unlock: Type.Boolean({ description: 'False if the store cannot list its keys.' }),
  }),
  keys: Type.Array(Type.String(), { description: 'The names of keys that can be typed.' }),
})

const results = {
  allowed: count('Requests that passed.'),
  denied: count('Requests that were denied.'),
  shadow_denied: count('Requests that passed, and that a policy in shadow would have denied.'),
  queued: count('Requests that a queue took.'),
  skipped: count('Requests that passed uncounted.'),
  shed: count('Requests that were refused under pressure.'),
  failed_open: count('Requests that passed without the store.'),
  failed_closed: count('Requests that were refused without the store.'),
}

export const liveAnswer = open(
  {
    instance: Type.String({ description: 'The process that answers.' }),
    scope: oneOf(['fleet', 'process'], {
      description: '`process`: other processes cannot be heard of.',
    }),
    processes: count('Processes that the counters tell of.'),
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
        fallback: count('Those of them that the failure mode decided.'),
        nearMisses: count('Allowed requests that left over 90% of the limit used.'),
        limit: optional(Type.Number()),
        windowSeconds: optional(Type.Number()),
        hotKeyShare: optional(Type.Number()),
      }),
      { description: 'The most refused first, 60 at most.' },
    ),
    policiesInAll: optional(count('Policies that were asked, or will be.')),
    latency: Type.Array(
      open({
        answeredBy: Type.String(),
        count: count('Decisions.'),
        sumSeconds: Type.Number(),
        buckets: Type.Array(
          open({
            le: optional(Type.Number({ description: 'Upper bound in seconds. Left out: none.' })),
            count: count('Decisions in this bucket alone.'),
          }),
        ),
      }),
    ),
    store: open({
      breaker: oneOf(['closed', 'half-open', 'open']),
      fallback: Type.Boolean({ description: 'True while failure modes decide requests.' }),
      keysOwed: count('Keys with units that were not reported to the store yet.'),
      instances: count('Processes that share the store, as last seen.'),
      clockSkewSeconds: Type.Number(),
      deadlinesMissed: count('Checks that the store did not answer in time.'),
      failedCalls: count('Calls to the store that failed.'),
    }),
  },
  'Counters of the fleet since the start of the process that answers, with those of other processes some seconds late. Gauges tell of the process itself. A page shows the difference of two answers of one instance.',
)

const rates = {
  checks: count('Checks of the policy.'),
  denied: count('Checks that were denied.'),
  shadowDenied: count('Checks in shadow that would have been denied.'),
  nearMisses: count('Allowed requests that left over 90% of the limit used.'),
  fallback: count('Those of them that the failure mode decided.'),
}

export const trafficAnswer = open(
  {
    at: instant,
    spanMs: count('The time (ms) that the counts are about: a minute, or less after a start.'),
    fallback: Type.Boolean({ description: 'True while failure modes decide requests.' }),
    processes: count('Processes that the counts tell of.'),
    knownProcesses: count('Processes that there are, as last seen.'),
    requests: count('Requests, whatever became of them.'),
    denied: count('Requests that were refused.'),
    shadowDenied: count('Requests that passed, and that a policy in shadow would have denied.'),
    nearMisses: rates.nearMisses,
    policies: Type.Array(open({ policy: policyName, ...rates }), {
      description: 'The most refused first, 10 at most.',
    }),
    policiesInAll: count('Policies that were asked.'),
    p50Ms: optional(Type.Number({ description: 'Left out: there was no decision.' })),
    p99Ms: optional(Type.Number()),
    points: Type.Array(
      Type.Array(Type.Union([Type.Number(), Type.Null()]), { minItems: 5, maxItems: 5 }),
      {
        description:
          'Every five seconds of the last 15 minutes: the time in seconds; requests, refusals, near misses and denials in shadow per second. null: a part of the fleet was not visible.',
      },
    ),
    outages: Type.Array(Type.Array(Type.Integer(), { minItems: 2, maxItems: 2 }), {
      description: 'Spans of the points, in seconds, in which failure modes decided requests.',
    }),
  },
  'Rates of the fleet, which the process that answers has sampled.',
)

export const nearAnswer = open({
  at: instant,
  scope: oneOf(['fleet', 'process']),
  processes: count('Processes that the identities are counted by.'),
  identities: Type.Array(
    open({
      policy: policyName,
      mode: oneOf(['enforce', 'shadow']),
      digest,
      name: optional(Type.String({ description: 'What reveal yields.' })),
      denied: count('Denials of the last hour.'),
      share: optional(
        Type.Number({
          description:
            'Share of the limit that the identity asked for in one window, estimated from the busiest keys of the last hour: 1 is the limit. Left out where the limit is not one number.',
        }),
      ),
    }),
    { description: 'The nearest to a limit, or over it, first: 20 at most.' },
  ),
  since: instant,
  policies: Type.Array(
    open({
      policy: policyName,
      hours: Type.Array(Type.Array(Type.Integer(), { minItems: 3, maxItems: 3 }), {
        description: 'Checks, denials and near misses of each of 24 hours from since on.',
      }),
    }),
    { description: 'Policies that had traffic, the most refused first: 50 at most.' },
  ),
  policiesInAll: count('Policies that had traffic.'),
})

export const queuesAnswer = open({
  queues: Type.Array(
    open({
      name: Type.String(),
      isAway: Type.Boolean({
        description: 'True if its broker did not answer: then all else is left out.',
      }),
      depth: optional(count('Jobs that wait or run.')),
      running: optional(count('Jobs that run.')),
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
  offset: count('Where the list begins.'),
  jobs: Type.Array(
    open({
      id: Type.String(),
      identity: Type.String({ description: 'The digest of the owner.' }),
      enqueuedAt: instant,
      attempts: count('Runs that have ended.'),
      error: optional(Type.String({ description: 'Left out for those who may only read.' })),
    }),
    { description: 'The newest first. Payloads are not shown.' },
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
  done: Type.Array(Type.String(), { description: 'Jobs that were changed, or would be.' }),
  missing: Type.Array(Type.String(), { description: 'Jobs that are no dead letters.' }),
  dryRun: isDryRun,
})

export const auditQuery = closed({ most: optional(Type.Integer({ minimum: 1, maximum: 1_000 })) })
export const auditAnswer = open({
  isAway: optional(
    Type.Boolean({ description: 'True while the store is away: newer records are not known.' }),
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
      result: optional(anything('What came of it.')),
      before: optional(
        Type.String({ description: 'The version before a change: a rollback to it undoes that.' }),
      ),
      undone: optional(Type.String({ description: 'The later version that undid the change.' })),
      changes: optional(
        Type.Array(difference, { description: 'What a version changed: 20 differences at most.' }),
      ),
    }),
    { description: 'The newest first.' },
  ),
})
