import type { InstrumentName } from './instrument-names.ts'

export type { InstrumentName }

/** A metric, for every reader. */
export interface Instrument {
  readonly kind: 'counter' | 'gauge' | 'histogram'
  /** In the notation of UCUM, for OpenTelemetry. @default seconds */
  readonly unit?: string
  readonly labels: readonly string[]
  /** Upper bounds of the buckets of a histogram. */
  readonly buckets?: readonly number[]
  /**
   * Name of the aggregator that joins the values of a cluster's processes.
   * @default 'max' of a gauge, else 'sum'
   */
  readonly aggregator?: 'sum'
  /** Meaning of the metric, in one sentence. */
  readonly help: string
}

const decisionBuckets = [0.00001, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5]
const callBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]
const workBuckets = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800]

/** All metrics. docs/metrics.md is written from this table. */
export const instruments: Readonly<Record<InstrumentName, Instrument>> = {
  sluice_requests_total: {
    kind: 'counter',
    unit: '{request}',
    labels: ['route', 'method_class', 'result'],
    help: 'HTTP requests by route pattern, method class and result',
  },
  sluice_checks_total: {
    kind: 'counter',
    unit: '{check}',
    labels: ['policy', 'result'],
    help: 'Checks of one policy for one request',
  },
  sluice_denials_total: {
    kind: 'counter',
    unit: '{request}',
    labels: ['policy', 'route'],
    help: 'Denied requests by the policy that denies for the longest, and by route',
  },
  sluice_penalties_total: {
    kind: 'counter',
    unit: '{request}',
    labels: ['policy'],
    help: 'Requests that a penalty denied, since their identity is blocked',
  },
  sluice_used_ratio: {
    kind: 'histogram',
    unit: '1',
    labels: ['policy'],
    buckets: [0.5, 0.8, 0.9, 0.95, 0.99, 1],
    help: 'Share of the limit that an allowed request leaves used: near misses',
  },
  sluice_decision_seconds: {
    kind: 'histogram',
    labels: ['answered_by'],
    buckets: decisionBuckets,
    help: 'Time from the question to the decision, by who answered',
  },
  sluice_policy_limit: {
    kind: 'gauge',
    unit: '{unit}',
    labels: ['policy'],
    help: 'Limit that the policy declares',
  },
  sluice_policy_window_seconds: {
    kind: 'gauge',
    labels: ['policy'],
    help: 'Window of the policy',
  },
  sluice_policy_info: {
    kind: 'gauge',
    unit: '1',
    labels: ['policy', 'mode', 'algorithm', 'version'],
    help: 'Always 1; the labels describe the policy that is in force',
  },
  sluice_hot_key_share: {
    kind: 'gauge',
    unit: '1',
    labels: ['policy'],
    help: 'Share of the requests of one or two minutes that the busiest identity made, in this process',
  },
  sluice_store_call_seconds: {
    kind: 'histogram',
    labels: [],
    buckets: callBuckets,
    help: 'Time of a call to the store; one call carries the checks of many requests',
  },
  sluice_store_call_checks: {
    kind: 'histogram',
    unit: '{check}',
    labels: [],
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024],
    help: 'Checks that one call to the store carries',
  },
  sluice_store_call_failures_total: {
    kind: 'counter',
    unit: '{call}',
    labels: [],
    help: 'Calls to the store that failed',
  },
  sluice_deadlines_missed_total: {
    kind: 'counter',
    unit: '{check}',
    labels: [],
    help: 'Checks that the store did not answer in time',
  },
  sluice_reconciled_units_total: {
    kind: 'counter',
    unit: '{unit}',
    labels: [],
    help: 'Units that were admitted without the store, and that it was told of later',
  },
  sluice_breaker_state: {
    kind: 'gauge',
    unit: '1',
    labels: [],
    help: 'Circuit breaker of the store: 0 closed, 1 half-open, 2 open',
  },
  sluice_fallback_active: {
    kind: 'gauge',
    unit: '1',
    labels: [],
    help: '1 while failure modes decide some requests at least, else 0',
  },
  sluice_keys_owed: {
    kind: 'gauge',
    unit: '{key}',
    labels: [],
    aggregator: 'sum',
    help: 'Keys of which the store has to be told what was admitted without it',
  },
  sluice_prefetch_units_total: {
    kind: 'counter',
    unit: '{unit}',
    labels: ['event'],
    help: 'Units of grants: taken from the store, spent without asking it, returned, or lapsed',
  },
  sluice_prefetch_hot_keys: {
    kind: 'gauge',
    unit: '{key}',
    labels: [],
    aggregator: 'sum',
    help: 'Keys that this process takes grants for',
  },
  sluice_uncounted_units: {
    kind: 'gauge',
    unit: '{unit}',
    labels: [],
    aggregator: 'sum',
    help: 'Units that policies with async have admitted, and that the store has not confirmed',
  },
  sluice_uncounted_bound_units: {
    kind: 'gauge',
    unit: '{unit}',
    labels: [],
    help: 'The most that a key of a policy with async may be over its limit, by all processes',
  },
  sluice_clock_skew_seconds: {
    kind: 'gauge',
    labels: [],
    help: 'How far the clock of the store is ahead of the one of this process',
  },
  sluice_fleet_instances: {
    kind: 'gauge',
    unit: '{instance}',
    labels: [],
    help: 'Processes that share the store, as last seen',
  },
  sluice_region_share: {
    kind: 'gauge',
    unit: '1',
    labels: ['region'],
    help: 'Share of each limit that is guaranteed to the region of this process',
  },
  sluice_region_units_total: {
    kind: 'counter',
    unit: '{unit}',
    labels: ['region', 'source'],
    help: 'Units that this process took from the share of its region, or borrowed from the pool',
  },
  sluice_region_held_units: {
    kind: 'gauge',
    unit: '{unit}',
    labels: ['region'],
    aggregator: 'sum',
    help: 'Units of the pool that this process holds, and has not spent',
  },
  sluice_region_bound_units: {
    kind: 'gauge',
    unit: '{unit}',
    labels: ['policy', 'region', 'part'],
    help: 'Bound in force of a policy: share of the region and pool of all regions, or the whole limit, by reach: global, or region for each region',
  },
  sluice_region_global_away: {
    kind: 'gauge',
    unit: '1',
    labels: ['region'],
    help: '1 while the global store does not answer this process, else 0',
  },
  sluice_jobs_total: {
    kind: 'counter',
    unit: '{job}',
    labels: ['queue', 'event'],
    help: 'What happened to jobs of queues',
  },
  sluice_job_wait_seconds: {
    kind: 'histogram',
    labels: ['queue'],
    buckets: workBuckets,
    help: 'Time from the arrival of a job to each of its runs',
  },
  sluice_job_run_seconds: {
    kind: 'histogram',
    labels: ['queue'],
    buckets: workBuckets,
    help: 'Time that a run of a job took',
  },
  sluice_queue_depth: {
    kind: 'gauge',
    unit: '{job}',
    labels: ['queue'],
    help: 'Jobs that wait or run',
  },
  sluice_queue_dead_letters: {
    kind: 'gauge',
    unit: '{job}',
    labels: ['queue'],
    help: 'Jobs that failed for good and are kept',
  },
  sluice_queue_oldest_seconds: {
    kind: 'gauge',
    labels: ['queue'],
    help: 'Age of the oldest job that has not ended',
  },
  sluice_outbound_calls_total: {
    kind: 'counter',
    unit: '{call}',
    labels: ['outbound', 'answer'],
    help: 'Calls to third parties by the class of the answer',
  },
  sluice_outbound_refusals_total: {
    kind: 'counter',
    unit: '{call}',
    labels: ['outbound', 'reason'],
    help: 'Calls to third parties that were not made',
  },
  sluice_outbound_pause_seconds_total: {
    kind: 'counter',
    labels: ['outbound'],
    help: 'Time for which third parties asked for no calls',
  },
  sluice_outbound_wait_seconds: {
    kind: 'histogram',
    labels: ['outbound'],
    buckets: workBuckets,
    help: 'Time that a call to a third party waited for its quota',
  },
  sluice_outbound_run_seconds: {
    kind: 'histogram',
    labels: ['outbound'],
    buckets: workBuckets,
    help: 'Time that a call to a third party took',
  },
  sluice_outbound_waiting: {
    kind: 'gauge',
    unit: '{call}',
    labels: ['outbound'],
    aggregator: 'sum',
    help: 'Calls that wait for the quota of a third party in this process',
  },
  sluice_client_wait_seconds: {
    kind: 'histogram',
    labels: ['reason'],
    buckets: workBuckets,
    help: 'Waits of calls of the client, by reason',
  },
  sluice_client_give_ups_total: {
    kind: 'counter',
    unit: '{call}',
    labels: ['reason'],
    help: 'Calls of the client that were not sent again although their answer suggested it',
  },
  sluice_series_overflow_total: {
    kind: 'counter',
    unit: '{series}',
    labels: ['metric'],
    help: 'Times that a label found no room and became other',
  },
}

/** The names of all metrics. */
export const instrumentNames: readonly InstrumentName[] = Object.keys(instruments).filter(
  (name): name is InstrumentName => name in instruments,
)
