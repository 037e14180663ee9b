/** One panel: what it shows, as queries with the names of their lines. */
interface Panel {
  readonly title: string
  readonly unit?: 'reqps' | 's' | 'percentunit' | 'short' | 'ops'
  readonly queries: readonly (readonly [expr: string, legend: string])[]
}

export interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly panels: readonly Panel[]
}

const job = 'job=~"$job"'
const policy = `${job},policy=~"$policy"`
const route = `${job},route=~"$route"`
const rate = (name: string, labels: string) => `rate(${name}{${labels}}[$__rate_interval])`
const quantile = (name: string, by: string, labels = job) =>
  `histogram_quantile(0.99, sum by (${by}le) (${rate(`${name}_bucket`, labels)}))`

export const dashboards: readonly Dashboard[] = [
  {
    uid: 'sluice-overview',
    title: 'Sluice: overview',
    panels: [
      {
        title: 'Requests by result',
        unit: 'reqps',
        queries: [[`sum by (result) (${rate('sluice_requests_total', route)})`, '{{result}}']],
      },
      {
        title: 'Share of requests that is denied',
        unit: 'percentunit',
        queries: [
          [
            `sum(${rate('sluice_requests_total', `${route},result="denied"`)}) / sum(${rate('sluice_requests_total', route)})`,
            'denied',
          ],
        ],
      },
      {
        title: 'Policies with the most denials',
        unit: 'reqps',
        queries: [
          [`topk(10, sum by (policy) (${rate('sluice_denials_total', route)}))`, '{{policy}}'],
        ],
      },
      {
        title: 'Routes with the most denials',
        unit: 'reqps',
        queries: [
          [`topk(10, sum by (route) (${rate('sluice_denials_total', route)}))`, '{{route}}'],
        ],
      },
      {
        title: 'Latency of the backend (99 %), from its own http_server_request_duration_seconds',
        unit: 's',
        queries: [[quantile('http_server_request_duration_seconds', ''), 'backend']],
      },
      {
        title: 'Time to decide (99 %), by who answered',
        unit: 's',
        queries: [[quantile('sluice_decision_seconds', 'answered_by, '), '{{answered_by}}']],
      },
      {
        title: 'Requests that a penalty denies',
        unit: 'reqps',
        queries: [[`sum by (policy) (${rate('sluice_penalties_total', job)})`, '{{policy}}']],
      },
    ],
  },
  {
    uid: 'sluice-policies',
    title: 'Sluice: policies',
    panels: [
      {
        title: 'Checks by result, shadow beside enforced',
        unit: 'ops',
        queries: [
          [
            `sum by (policy, result) (${rate('sluice_checks_total', policy)})`,
            '{{policy}} {{result}}',
          ],
        ],
      },
      {
        title: 'Near misses: share of allowed requests that leave over 90 % used',
        unit: 'percentunit',
        queries: [
          [
            `1 - sum by (policy) (${rate('sluice_used_ratio_bucket', `${policy},le="0.9"`)}) / sum by (policy) (${rate('sluice_used_ratio_bucket', `${policy},le="+Inf"`)})`,
            '{{policy}}',
          ],
        ],
      },
      {
        title: 'Share of the busiest identity',
        unit: 'percentunit',
        queries: [[`max by (policy) (sluice_hot_key_share{${policy}})`, '{{policy}}']],
      },
      {
        title: 'Limits',
        queries: [[`max by (policy) (sluice_policy_limit{${policy}})`, '{{policy}}']],
      },
      {
        title: 'Windows',
        unit: 's',
        queries: [[`max by (policy) (sluice_policy_window_seconds{${policy}})`, '{{policy}}']],
      },
      {
        title: 'Modes and algorithms',
        queries: [
          [
            `max by (policy, mode, algorithm, version) (sluice_policy_info{${policy}})`,
            '{{policy}} {{mode}} {{algorithm}} {{version}}',
          ],
        ],
      },
    ],
  },
  {
    uid: 'sluice-store',
    title: 'Sluice: store and fallback',
    panels: [
      {
        title: 'Calls to the store (99 %)',
        unit: 's',
        queries: [[quantile('sluice_store_call_seconds', ''), 'call']],
      },
      {
        title: 'Checks in one call',
        queries: [
          [
            `sum(${rate('sluice_store_call_checks_sum', job)}) / sum(${rate('sluice_store_call_checks_count', job)})`,
            'checks',
          ],
        ],
      },
      {
        title: 'Calls that fail, and checks that are answered too late',
        unit: 'ops',
        queries: [
          [`sum(${rate('sluice_store_call_failures_total', job)})`, 'failed calls'],
          [`sum(${rate('sluice_deadlines_missed_total', job)})`, 'late checks'],
        ],
      },
      {
        title: 'Breaker (2: open) and fallback (1: in use)',
        queries: [
          [`max by (instance) (sluice_breaker_state{${job}})`, 'breaker {{instance}}'],
          [`max by (instance) (sluice_fallback_active{${job}})`, 'fallback {{instance}}'],
        ],
      },
      {
        title: 'Keys owed to the store, and units that it was told of',
        queries: [
          [`sum(sluice_keys_owed{${job}})`, 'keys owed'],
          [`sum(increase(sluice_reconciled_units_total{${job}}[$__rate_interval]))`, 'units told'],
        ],
      },
      {
        title: 'Units of grants (policies with prefetch)',
        unit: 'ops',
        queries: [[`sum by (event) (${rate('sluice_prefetch_units_total', job)})`, '{{event}}']],
      },
      {
        title: 'Hot keys that processes take grants for',
        queries: [[`sum(sluice_prefetch_hot_keys{${job}})`, 'keys']],
      },
      {
        title: 'Units that the store has not confirmed (policies with async)',
        queries: [
          [`sum(sluice_uncounted_units{${job}})`, 'units, all keys'],
          [`max(sluice_uncounted_bound_units{${job}})`, 'bound for one key'],
        ],
      },
      {
        title: 'Processes and clock skew',
        queries: [
          [`max(sluice_fleet_instances{${job}})`, 'processes'],
          [`max(abs(sluice_clock_skew_seconds{${job}}))`, 'skew in s'],
        ],
      },
      {
        title: 'Units by region, from the share and from the pool',
        unit: 'ops',
        queries: [
          [
            `sum by (region, source) (${rate('sluice_region_units_total', job)})`,
            '{{region}} {{source}}',
          ],
        ],
      },
      {
        title: 'Regions: guaranteed share, and held units of the pool',
        queries: [
          [`max by (region) (sluice_region_share{${job}})`, 'share {{region}}'],
          [`sum by (region) (sluice_region_held_units{${job}})`, 'held {{region}}'],
          [`max by (region) (sluice_region_global_away{${job}})`, 'global store away {{region}}'],
        ],
      },
      {
        title: 'Bounds in force by region, in units',
        queries: [
          [
            `max by (policy, region, part) (sluice_region_bound_units{${job}})`,
            '{{policy}} {{region}} {{part}}',
          ],
        ],
      },
    ],
  },
  {
    uid: 'sluice-queues',
    title: 'Sluice: queues, third parties and clients',
    panels: [
      {
        title: 'Jobs',
        unit: 'ops',
        queries: [
          [`sum by (queue, event) (${rate('sluice_jobs_total', job)})`, '{{queue}} {{event}}'],
        ],
      },
      {
        title: 'Jobs that wait or run, and dead letters',
        queries: [
          [`max by (queue) (sluice_queue_depth{${job}})`, '{{queue}} depth'],
          [`max by (queue) (sluice_queue_dead_letters{${job}})`, '{{queue}} dead'],
        ],
      },
      {
        title: 'Age of the oldest job',
        unit: 's',
        queries: [[`max by (queue) (sluice_queue_oldest_seconds{${job}})`, '{{queue}}']],
      },
      {
        title: 'Waits and runs of jobs (99 %)',
        unit: 's',
        queries: [
          [quantile('sluice_job_wait_seconds', 'queue, '), '{{queue}} wait'],
          [quantile('sluice_job_run_seconds', 'queue, '), '{{queue}} run'],
        ],
      },
      {
        title: 'Calls to third parties',
        unit: 'ops',
        queries: [
          [
            `sum by (outbound, answer) (${rate('sluice_outbound_calls_total', job)})`,
            '{{outbound}} {{answer}}',
          ],
          [
            `sum by (outbound, reason) (${rate('sluice_outbound_refusals_total', job)})`,
            '{{outbound}} {{reason}}',
          ],
        ],
      },
      {
        title: 'Third parties: waits, runs (99 %), calls that wait, and pauses',
        unit: 's',
        queries: [
          [quantile('sluice_outbound_wait_seconds', 'outbound, '), '{{outbound}} wait'],
          [quantile('sluice_outbound_run_seconds', 'outbound, '), '{{outbound}} run'],
          [`sum by (outbound) (sluice_outbound_waiting{${job}})`, '{{outbound}} waiting calls'],
          [
            `sum by (outbound) (${rate('sluice_outbound_pause_seconds_total', job)})`,
            '{{outbound}} paused',
          ],
        ],
      },
      {
        title: 'Clients: waits (99 %) and calls given up',
        queries: [
          [quantile('sluice_client_wait_seconds', 'reason, '), 'wait {{reason}}'],
          [`sum by (reason) (${rate('sluice_client_give_ups_total', job)})`, 'given up {{reason}}'],
        ],
      },
    ],
  },
]

// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const datasource = { type: 'prometheus', uid: '${datasource}' }

/** The variables that panels may use, with the series that have their values. */
const variables = [
  // Every process shows this one. All means the jobs of the list, and not whatever Prometheus knows.
  { name: 'job', series: 'sluice_fleet_instances' },
  { name: 'policy', series: `sluice_checks_total{${job}}`, allValue: '.*' },
  { name: 'route', series: `sluice_requests_total{${job}}`, allValue: '.*' },
]

function variable({ name, series, ...all }: (typeof variables)[number]) {
  const query = `label_values(${series}, ${name})`
  return {
    ...{ name, label: name, type: 'query', datasource, query, definition: query, refresh: 2 },
    ...{ includeAll: true, multi: true, ...all, current: { text: 'All', value: '$__all' } },
  }
}

/** A dashboard as Grafana imports it: panels in two columns. */
export function grafanaJson({ uid, title, panels }: Dashboard): string {
  const asked = JSON.stringify(panels)
  const dashboard = {
    ...{
      uid,
      title,
      tags: ['sluice'],
      schemaVersion: 39,
      version: 1,
      editable: true,
      refresh: '30s',
    },
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
        ...variables.filter(({ name }) => asked.includes(`$${name}`)).map(variable),
      ],
    },
    panels: panels.map(({ title: panelTitle, unit = 'short', queries }, index) => ({
      ...{ id: index + 1, title: panelTitle, type: 'timeseries', datasource },
      gridPos: { h: 8, w: 12, x: (index % 2) * 12, y: Math.floor(index / 2) * 8 },
      fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
      targets: queries.map(([expr, legendFormat], place) => ({
        ...{ refId: String.fromCharCode(65 + place), datasource, expr, legendFormat },
      })),
    })),
  }
  return `${JSON.stringify(dashboard, undefined, 2)}\n`
}
