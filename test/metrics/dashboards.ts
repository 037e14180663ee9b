import { instruments } from '@sluice/metrics'

type Unit = 'reqps' | 's' | 'percentunit' | 'short' | 'ops'

/** One panel: what it shows, as queries with the names of their lines, and a unit of their own. */
interface Panel {
  readonly title: string
  /** @default the meaning of its metrics */
  readonly description?: string
  /** @default 'timeseries' */
  readonly type?: 'stat' | 'table'
  readonly unit?: Unit
  /** From these values on it is orange, and red. One value is red. */
  readonly thresholds?: readonly number[]
  /** Words for the values 0, 1, 2. */
  readonly words?: readonly string[]
  readonly queries: readonly (readonly [expr: string, legend: string, unit?: Unit])[]
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
const denied = `sum(${rate('sluice_requests_total', `${route},result="denied"`)}) / sum(${rate('sluice_requests_total', route)})`
/** Each policy in force, as the labels of a row. */
const inForce = 'max by (policy, mode, algorithm, version)'
const described = (name: string) =>
  `${inForce} (sluice_policy_info{${policy}}) * on (policy) group_left () max by (policy) (${name}{${policy}})`
const quantile = (name: string, by: string, labels = job) =>
  `histogram_quantile(0.99, sum by (${by}le) (${rate(`${name}_bucket`, labels)}))`

const processes = [
  [`count(sluice_fleet_instances{${job}})`, 'seen'],
  [`max(sluice_fleet_instances{${job}})`, 'share the store'],
] as const

/** Marks in every panel: what happened to the policies. */
export const annotations = [
  {
    name: 'Policy versions',
    iconColor: 'blue',
    textFormat: '{{version}}',
    expr: `max by (version) (sluice_policy_info{${job}}) unless on (version) max by (version) (sluice_policy_info{${job}} offset $__interval)`,
  },
  ...(['Count only', 'Let everything pass'] as const).map((words, index) => ({
    name: `Kill switch: ${words}`,
    iconColor: index === 0 ? 'orange' : 'red',
    textFormat: words,
    expr: `max by (job) (sluice_kill_switch{${job}}) == ${index + 1}`,
  })),
]

export const dashboards: readonly Dashboard[] = [
  {
    uid: 'sluice-overview',
    title: 'Sluice: overview',
    panels: [
      {
        title: 'Denied',
        type: 'stat',
        unit: 'percentunit',
        thresholds: [0.01, 0.05],
        queries: [[denied, 'denied']],
      },
      {
        title: 'On the fallback',
        type: 'stat',
        description: 'Processes that decide some requests without their store',
        thresholds: [1],
        queries: [[`sum(sluice_fallback_active{${job}})`, 'processes']],
      },
      {
        title: 'Time to decide (99 %)',
        type: 'stat',
        unit: 's',
        thresholds: [0.025, 0.1],
        queries: [[quantile('sluice_decision_seconds', ''), 'p99']],
      },
      {
        title: 'Keys owed',
        type: 'stat',
        thresholds: [1, 10_000],
        queries: [[`sum(sluice_keys_owed{${job}})`, 'keys']],
      },
      {
        title: 'Processes',
        type: 'stat',
        description:
          'Processes that Prometheus sees, and those that share the store. A missing one is stopped, or is not scraped.',
        queries: processes,
      },
      {
        title: 'Kill switch',
        type: 'stat',
        thresholds: [1, 2],
        words: ['Enforce', 'Count only', 'Let everything pass'],
        queries: [[`max(sluice_kill_switch{${job}})`, 'kill switch']],
      },
      {
        title: 'Requests by result',
        unit: 'reqps',
        queries: [[`sum by (result) (${rate('sluice_requests_total', route)})`, '{{result}}']],
      },
      {
        title: 'Share of requests that is denied',
        unit: 'percentunit',
        thresholds: [0.05],
        queries: [[denied, 'denied']],
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
        title: 'Latency of the backend (99 %)',
        description: 'From your own metric http_server_request_duration_seconds',
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
        thresholds: [0.8],
      },
      {
        title: 'Share of the busiest identity',
        unit: 'percentunit',
        thresholds: [0.5],
        queries: [[`max by (policy) (sluice_hot_key_share{${policy}})`, '{{policy}}']],
      },
      {
        title: 'Limits and modes',
        type: 'table',
        description:
          'The policies in force, and the number of processes that have each. Two versions of one policy for long: a process has not taken the change over.',
        queries: [
          [described('sluice_policy_limit'), 'limit'],
          [described('sluice_policy_window_seconds'), 'window', 's'],
          [
            `count by (policy, mode, algorithm, version) (sluice_policy_info{${policy}})`,
            'processes',
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
        thresholds: [1, 2],
        queries: [
          [`max by (instance) (sluice_breaker_state{${job}})`, 'breaker {{instance}}'],
          [`max by (instance) (sluice_fallback_active{${job}})`, 'fallback {{instance}}'],
        ],
      },
      {
        title: 'Keys owed to the store, and units that it was told of',
        queries: [
          [`sum(sluice_keys_owed{${job}})`, 'keys owed'],
          [`sum(${rate('sluice_reconciled_units_total', job)})`, 'units told', 'ops'],
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
        title: 'Processes',
        description: 'Processes that Prometheus sees, and those that share the store',
        queries: processes,
      },
      {
        title: 'Clock skew',
        unit: 's',
        thresholds: [1],
        queries: [[`max(abs(sluice_clock_skew_seconds{${job}}))`, 'skew']],
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
          [`max by (region) (sluice_region_share{${job}})`, 'share {{region}}', 'percentunit'],
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
        thresholds: [300],
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
          [
            `sum by (outbound) (sluice_outbound_waiting{${job}})`,
            '{{outbound}} waiting calls',
            'short',
          ],
          [
            `sum by (outbound) (${rate('sluice_outbound_pause_seconds_total', job)})`,
            '{{outbound}} paused',
            'percentunit',
          ],
        ],
      },
      {
        title: 'Clients: waits (99 %) and calls given up',
        unit: 's',
        queries: [
          [quantile('sluice_client_wait_seconds', 'reason, '), 'wait {{reason}}'],
          [
            `sum by (reason) (${rate('sluice_client_give_ups_total', job)})`,
            'given up {{reason}}',
            'ops',
          ],
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

/** The page of @sluice/admin: where it is, is for the reader to say. */
const adminUrl = 'http://localhost:3000/limits/'
const admin = {
  ...{ name: 'admin', label: 'Admin page', type: 'textbox', query: adminUrl },
  current: { text: adminUrl, value: adminUrl },
}
// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const adminPage = '${admin:raw}'

const sizes = { stat: [4, 4], table: [24, 10], timeseries: [12, 8] } as const

/** A dashboard as Grafana imports it: stats and graphs fill rows of 24 units. */
export function grafanaJson({ uid, title, panels }: Dashboard): string {
  const asked = JSON.stringify(panels)
  const corner = { x: 0, y: 0, h: 0 }
  const dashboard = {
    ...{ uid, title, tags: ['sluice'], schemaVersion: 39, version: 1, editable: true },
    ...{ refresh: '30s', time: { from: 'now-1h', to: 'now' } },
    links: [
      { type: 'dashboards', title: 'Sluice', tags: ['sluice'], asDropdown: true, keepTime: true },
      { type: 'link', title: 'Admin page', url: adminPage, icon: 'external link' },
    ].map((link) => ({ ...link, targetBlank: link.type === 'link' })),
    annotations: {
      list: annotations.map((each) => ({
        ...each,
        datasource,
        enable: true,
        titleFormat: each.name,
      })),
    },
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
        ...variables.filter(({ name }) => asked.includes(`$${name}`)).map(variable),
        admin,
      ],
    },
    panels: panels.map((panel, index) => {
      const [w, h] = sizes[panel.type ?? 'timeseries']
      if (corner.x + w > 24) Object.assign(corner, { x: 0, y: corner.y + corner.h })
      const gridPos = { h, w, x: corner.x, y: corner.y }
      Object.assign(corner, { x: corner.x + w, h })
      return { id: index + 1, gridPos, ...grafanaPanel(panel) }
    }),
  }
  return `${JSON.stringify(dashboard, undefined, 2)}\n`
}

function grafanaPanel({
  title,
  type,
  unit = 'short',
  thresholds,
  words,
  queries,
  ...panel
}: Panel) {
  const isTable = type === 'table'
  const refs = queries.map((query, place) => [String.fromCharCode(65 + place), ...query] as const)
  const byPolicy = isTable ? 'data.fields' : 'field.labels'
  const colors = [...(thresholds?.length === 1 ? [] : ['orange']), 'red']
  const steps = (thresholds ?? []).map((value, index) => ({ color: colors[index], value }))
  return {
    ...{ title, type: type ?? 'timeseries', datasource },
    description: panel.description ?? meaning(queries.map(([expr]) => expr)),
    fieldConfig: {
      defaults: {
        ...{ unit, min: 0 },
        ...(thresholds && {
          thresholds: { mode: 'absolute', steps: [{ color: 'green', value: null }, ...steps] },
        }),
        ...(thresholds && !type && { custom: { thresholdsStyle: { mode: 'line' } } }),
        ...(words && {
          mappings: [
            { type: 'value', options: Object.fromEntries(words.map((text, i) => [i, { text }])) },
          ],
        }),
        ...(queries.some(([expr]) => /by \(policy\b/.test(expr)) && {
          links: [
            {
              ...{ title: 'Busiest keys of this policy', targetBlank: true },
              url: `${adminPage}#/top/\${__${byPolicy}.policy}`,
            },
          ],
        }),
      },
      // A table has one frame of all its queries.
      overrides: refs.flatMap(([refId, , name, own]) => {
        const id = isTable ? 'byName' : 'byFrameRefID'
        const matcher = { id, options: isTable ? name : refId }
        return own ? [{ matcher, properties: [{ id: 'unit', value: own }] }] : []
      }),
    },
    ...(type === 'stat' && { options: { colorMode: thresholds ? 'background' : 'value' } }),
    ...(isTable && {
      transformations: [
        { id: 'merge', options: {} },
        {
          id: 'organize',
          options: {
            excludeByName: { Time: true },
            renameByName: Object.fromEntries(refs.map(([id, , name]) => [`Value #${id}`, name])),
          },
        },
      ],
    }),
    targets: refs.map(([refId, expr, legendFormat]) => ({
      ...{ refId, datasource, expr, legendFormat },
      ...(isTable && { format: 'table', instant: true }),
    })),
  }
}

/** What the metrics of some queries mean. */
function meaning(exprs: readonly string[]): string {
  const text = exprs.join(' ')
  const known = Object.entries(instruments).filter(([name]) =>
    new RegExp(`${name}(?:_bucket|_sum|_count)?\\b`).test(text),
  )
  return known.map(([, { help }]) => `${help}.`).join(' ')
}
