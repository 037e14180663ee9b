/** A metric, for every exporter. */
export interface Instrument {
  readonly kind: 'counter' | 'gauge' | 'histogram'
  /** In UCUM notation, for OpenTelemetry. @default seconds */
  readonly unit?: string
  readonly labels: readonly string[]
  /** Upper bounds of the buckets of a histogram. */
  readonly buckets?: readonly number[]
  /**
   * Name of the aggregator that combines the values of a cluster's processes.
   * @default 'max' for a gauge, otherwise 'sum'
   */
  readonly aggregator?: 'sum'
  /** Meaning of the metric, in one sentence. */
  readonly help: string
}

const bounds = {
  decision: [0.00001, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5],
  call: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
  work: [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800],
  share: [0.5, 0.8, 0.9, 0.95, 0.99, 1],
  size: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024],
}

/**
 * A metric as described in its row. A histogram has buckets, and a counter's name ends in `_total`.
 * `_seconds` in the name is the unit; any other metric without a unit is a plain number.
 */
interface Row extends Pick<Instrument, 'unit' | 'aggregator' | 'help'> {
  /** Its labels. */
  readonly by?: readonly string[]
  readonly buckets?: keyof typeof bounds
}

/** All metrics. docs/metrics.md is written from this table. */
const rows = {
  sluice_requests_total: {
    unit: '{request}',
    by: ['route', 'method_class', 'result'],
    help: 'HTTP requests by route pattern, method class and result',
  },
  sluice_checks_total: {
    unit: '{check}',
    by: ['policy', 'result'],
    help: 'Checks, one per policy per request, by result',
  },
  sluice_denials_total: {
    unit: '{request}',
    by: ['policy', 'route'],
    help: 'Denied requests, by route and by the policy with the longest wait',
  },
  sluice_penalties_total: {
    unit: '{request}',
    by: ['policy'],
    help: 'Requests that a penalty denied because their identity is blocked',
  },
  sluice_used_ratio: {
    by: ['policy'],
    buckets: 'share',
    help: 'Share of the limit in use after an allowed request, to show near misses',
  },
  sluice_decision_seconds: {
    by: ['answered_by'],
    buckets: 'decision',
    help: 'Time from the check to the decision, by source of the answer',
  },
  sluice_policy_limit: { unit: '{unit}', by: ['policy'], help: 'Declared limit of the policy' },
  sluice_policy_window_seconds: { by: ['policy'], help: 'Window of the policy' },
  sluice_policy_info: {
    by: ['policy', 'mode', 'algorithm', 'version'],
    help: 'Always 1; the labels describe the current policy',
  },
  sluice_kill_switch: { help: 'Kill switch: 0 enforce, 1 count only, 2 let everything pass' },
  sluice_hot_key_share: {
    by: ['policy'],
    help: "The busiest identity's share of the requests to this process, over the last one or two minutes",
  },
  sluice_store_call_seconds: {
    buckets: 'call',
    help: 'Duration of a call to the store; one call carries the checks of many requests',
  },
  sluice_store_call_checks: {
    unit: '{check}',
    buckets: 'size',
    help: 'Checks per call to the store',
  },
  sluice_store_call_failures_total: { unit: '{call}', help: 'Calls to the store that failed' },
  sluice_deadlines_missed_total: {
    unit: '{check}',
    help: 'Checks that the store did not answer in time',
  },
  sluice_reconciled_units_total: {
    unit: '{unit}',
    help: 'Units that were admitted without the store and reported to it later',
  },
  sluice_breaker_state: { help: 'Circuit breaker of the store: 0 closed, 1 half-open, 2 open' },
  sluice_fallback_active: { help: '1 while some decisions come from a failure mode, else 0' },
  sluice_keys_owed: {
    unit: '{key}',
    aggregator: 'sum',
    help: 'Keys with units that have not been reported to the store yet',
  },
  sluice_prefetch_units_total: {
    unit: '{unit}',
    by: ['event'],
    help: 'Units of grants: taken from the store, spent without a call to it, returned, or lapsed',
  },
  sluice_prefetch_hot_keys: {
    unit: '{key}',
    aggregator: 'sum',
    help: 'Keys that this process takes grants for',
  },
  sluice_uncounted_units: {
    unit: '{unit}',
    aggregator: 'sum',
    help: 'Units admitted with async that the store has not confirmed',
  },
  sluice_uncounted_bound_units: {
    unit: '{unit}',
    help: 'Bound on how far all processes together may exceed the limit of a key, with async',
  },
  sluice_clock_skew_seconds: {
    help: 'How far the clock of the store is ahead of the clock of this process',
  },
  sluice_fleet_instances: {
    unit: '{instance}',
    help: 'Processes that share the store, as last seen',
  },
  sluice_region_share: {
    by: ['region'],
    help: 'Share of each limit that is guaranteed to the region of this process',
  },
  sluice_region_units_total: {
    unit: '{unit}',
    by: ['region', 'source'],
    help: 'Units that this process took from the share of its region or borrowed from the pool',
  },
  sluice_region_held_units: {
    unit: '{unit}',
    by: ['region'],
    aggregator: 'sum',
    help: 'Unspent units that this process has taken from the pool',
  },
  sluice_region_bound_units: {
    unit: '{unit}',
    by: ['policy', 'region', 'part'],
    help: 'Current bound of a policy, by part: share of the region, pool, or the whole limit (global, or in each region)',
  },
  sluice_region_global_away: {
    by: ['region'],
    help: '1 while the global store does not answer this process, else 0',
  },
  sluice_jobs_total: {
    unit: '{job}',
    by: ['queue', 'event'],
    help: 'Queue jobs, by event',
  },
  sluice_job_wait_seconds: {
    by: ['queue'],
    buckets: 'work',
    help: 'Time from the arrival of a job to each of its runs',
  },
  sluice_job_run_seconds: { by: ['queue'], buckets: 'work', help: 'Duration of a job run' },
  sluice_queue_depth: { unit: '{job}', by: ['queue'], help: 'Jobs that are waiting or running' },
  sluice_queue_dead_letters: {
    unit: '{job}',
    by: ['queue'],
    help: 'Jobs that failed for good and are kept',
  },
  sluice_queue_oldest_seconds: { by: ['queue'], help: 'Age of the oldest unfinished job' },
  sluice_outbound_calls_total: {
    unit: '{call}',
    by: ['outbound', 'answer'],
    help: 'Calls to third parties, by class of response',
  },
  sluice_outbound_refusals_total: {
    unit: '{call}',
    by: ['outbound', 'reason'],
    help: 'Calls to third parties that were not made, by reason',
  },
  sluice_outbound_pause_seconds_total: {
    by: ['outbound'],
    help: 'Duration of pauses that third parties asked for',
  },
  sluice_outbound_wait_seconds: {
    by: ['outbound'],
    buckets: 'work',
    help: 'Time that a call to a third party waited for its quota',
  },
  sluice_outbound_run_seconds: {
    by: ['outbound'],
    buckets: 'work',
    help: 'Duration of a call to a third party',
  },
  sluice_outbound_waiting: {
    unit: '{call}',
    by: ['outbound'],
    aggregator: 'sum',
    help: 'Calls in this process that wait for the quota of a third party',
  },
  sluice_client_wait_seconds: {
    by: ['reason'],
    buckets: 'work',
    help: 'Time that client calls waited, by reason',
  },
  sluice_client_give_ups_total: {
    unit: '{call}',
    by: ['reason'],
    help: 'Client calls that were not retried although the response suggested a retry',
  },
  sluice_series_overflow_total: {
    unit: '{series}',
    by: ['metric'],
    help: 'Number of times a label value was recorded as other for lack of room',
  },
} as const

/** A metric's name in Prometheus, in base units. */
export type InstrumentName = keyof typeof rows

/** The names of all metrics. */
export const instrumentNames: readonly InstrumentName[] = Object.keys(rows).filter(
  (name): name is InstrumentName => name in rows,
)

/** All metrics by name. */
export const instruments: Readonly<Record<InstrumentName, Instrument>> = Object.fromEntries(
  instrumentNames.map((name) => [name, instrumentOf(name, rows[name])]),
) as Record<InstrumentName, Instrument>

function instrumentOf(name: InstrumentName, { buckets, by: labels = [], ...row }: Row): Instrument {
  const unit = name.includes('_seconds') ? {} : { unit: '1' }
  const single = name.endsWith('_total') ? 'counter' : 'gauge'
  if (!buckets) return { kind: single, labels, ...unit, ...row }
  return { kind: 'histogram', labels, buckets: bounds[buckets], ...unit, ...row }
}

/** A metric's name in OpenTelemetry: `sluice.policy_window.duration`. */
export function otelName(name: InstrumentName): string {
  return name
    .replace(/_total$/, '')
    .replace(/_seconds$/, '.duration')
    .replace(/^sluice_/, 'sluice.')
}
