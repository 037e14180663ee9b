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
  readonly queries: readonly Query[]
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
const quantile = (name: string, by: string) =>
  `histogram_quantile(0.99, sum by (${by}le) (${rate(`${name}_bucket`, job)}))`

type Query = readonly [expr: string, legend: string, unit?: Unit]

/** A line for each value of some labels, which are its name. */
const legendOf = (labels: string) => labels.replace(/\w+/g, '{{$&}}').replaceAll(',', '')
const rateBy = (by: string, name: string, labels = job): Query => [
  `sum by (${by}) (${rate(name, labels)})`,
  legendOf(by),
]
const topBy = (by: string, name: string): Query => [
  `topk(10, ${rateBy(by, name, route)[0]})`,
  legendOf(by),
]
const maxBy = (by: string, name: string, legend = legendOf(by)) =>
  [`max by (${by}) (${name}{${job}})`, legend] as const
const quantileBy = (by: string, name: string, legend = legendOf(by)): Query => [
  quantile(name, `${by}, `),
  legend,
]

function graph(title: string, unit: Unit, ...queries: readonly Query[]): Panel {
  return { title, unit, queries }
}

function stat(title: string, look: Partial<Panel>, ...queries: readonly Query[]): Panel {
  return { title, type: 'stat', ...look, queries }
}

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

/** The panels of each dashboard: graphs, unless they say otherwise. */
export const dashboards: readonly Dashboard[] = [
  {
    uid: 'sluice-overview',
    title: 'Sluice: overview',
    panels: [
      stat('Denied', { unit: 'percentunit', thresholds: [0.01, 0.05] }, [denied, 'denied']),
      stat(
        'On the fallback',
        {
          description: 'Processes that decide some requests without their store',
          thresholds: [1],
        },
        [`sum(sluice_fallback_active{${job}})`, 'processes'],
      ),
      stat('Time to decide (99 %)', { unit: 's', thresholds: [0.025, 0.1] }, [
        quantile('sluice_decision_seconds', ''),
        'p99',
      ]),
      stat('Keys owed', { thresholds: [1, 10_000] }, [`sum(sluice_keys_owed{${job}})`, 'keys']),
      stat(
        'Processes',
        {
          description:
            'Processes that Prometheus sees, and those that share the store. A missing one is stopped, or is not scraped.',
        },
        ...processes,
      ),
      stat(
        'Kill switch',
        { thresholds: [1, 2], words: ['Enforce', 'Count only', 'Let everything pass'] },
        [`max(sluice_kill_switch{${job}})`, 'kill switch'],
      ),
      graph('Requests by result', 'reqps', rateBy('result', 'sluice_requests_total', route)),
      {
        ...graph('Share of requests that is denied', 'percentunit', [denied, 'denied']),
        thresholds: [0.05],
      },
      graph('Policies with the most denials', 'reqps', topBy('policy', 'sluice_denials_total')),
      graph('Routes with the most denials', 'reqps', topBy('route', 'sluice_denials_total')),
      {
        ...graph('Latency of the backend (99 %)', 's', [
          quantile('http_server_request_duration_seconds', ''),
          'backend',
        ]),
        description: 'From your own metric http_server_request_duration_seconds',
      },
      graph(
        'Time to decide (99 %), by who answered',
        's',
        quantileBy('answered_by', 'sluice_decision_seconds'),
      ),
      graph('Requests that a penalty denies', 'reqps', rateBy('policy', 'sluice_penalties_total')),
    ],
  },
  {
    uid: 'sluice-policies',
    title: 'Sluice: policies',
    panels: [
      graph(
        'Checks by result, shadow beside enforced',
        'ops',
        rateBy('policy, result', 'sluice_checks_total', policy),
      ),
      {
        ...graph(
          'Near misses: share of allowed requests that leave over 90 % used',
          'percentunit',
          [
            `1 - sum by (policy) (${rate('sluice_used_ratio_bucket', `${policy},le="0.9"`)}) / sum by (policy) (${rate('sluice_used_ratio_bucket', `${policy},le="+Inf"`)})`,
            '{{policy}}',
          ],
        ),
        thresholds: [0.8],
      },
      {
        ...graph('Share of the busiest identity', 'percentunit', [
          `max by (policy) (sluice_hot_key_share{${policy}})`,
          '{{policy}}',
        ]),
        thresholds: [0.5],
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
      graph('Calls to the store (99 %)', 's', [quantile('sluice_store_call_seconds', ''), 'call']),
      graph('Checks in one call', 'short', [
        `sum(${rate('sluice_store_call_checks_sum', job)}) / sum(${rate('sluice_store_call_checks_count', job)})`,
        'checks',
      ]),
      graph(
        'Calls that fail, and checks that are answered too late',
        'ops',
        [`sum(${rate('sluice_store_call_failures_total', job)})`, 'failed calls'],
        [`sum(${rate('sluice_deadlines_missed_total', job)})`, 'late checks'],
      ),
      {
        ...graph(
          'Breaker (2: open) and fallback (1: in use)',
          'short',
          maxBy('instance', 'sluice_breaker_state', 'breaker {{instance}}'),
          maxBy('instance', 'sluice_fallback_active', 'fallback {{instance}}'),
        ),
        thresholds: [1, 2],
      },
      graph(
        'Keys owed to the store, and units that it was told of',
        'short',
        [`sum(sluice_keys_owed{${job}})`, 'keys owed'],
        [`sum(${rate('sluice_reconciled_units_total', job)})`, 'units told', 'ops'],
      ),
      graph(
        'Units of grants (policies with prefetch)',
        'ops',
        rateBy('event', 'sluice_prefetch_units_total'),
      ),
      graph('Hot keys that processes take grants for', 'short', [
        `sum(sluice_prefetch_hot_keys{${job}})`,
        'keys',
      ]),
      graph(
        'Units that the store has not confirmed (policies with async)',
        'short',
        [`sum(sluice_uncounted_units{${job}})`, 'units, all keys'],
        [`max(sluice_uncounted_bound_units{${job}})`, 'bound for one key'],
      ),
      {
        ...graph('Processes', 'short', ...processes),
        description: 'Processes that Prometheus sees, and those that share the store',
      },
      {
        ...graph('Clock skew', 's', [`max(abs(sluice_clock_skew_seconds{${job}}))`, 'skew']),
        thresholds: [1],
      },
      graph(
        'Units by region, from the share and from the pool',
        'ops',
        rateBy('region, source', 'sluice_region_units_total'),
      ),
      graph(
        'Regions: guaranteed share, and held units of the pool',
        'short',
        [...maxBy('region', 'sluice_region_share', 'share {{region}}'), 'percentunit'],
        [`sum by (region) (sluice_region_held_units{${job}})`, 'held {{region}}'],
        maxBy('region', 'sluice_region_global_away', 'global store away {{region}}'),
      ),
      graph(
        'Bounds in force by region, in units',
        'short',
        maxBy('policy, region, part', 'sluice_region_bound_units'),
      ),
    ],
  },
  {
    uid: 'sluice-queues',
    title: 'Sluice: queues, third parties and clients',
    panels: [
      graph('Jobs', 'ops', rateBy('queue, event', 'sluice_jobs_total')),
      graph(
        'Jobs that wait or run, and dead letters',
        'short',
        maxBy('queue', 'sluice_queue_depth', '{{queue}} depth'),
        maxBy('queue', 'sluice_queue_dead_letters', '{{queue}} dead'),
      ),
      {
        ...graph('Age of the oldest job', 's', maxBy('queue', 'sluice_queue_oldest_seconds')),
        thresholds: [300],
      },
      graph(
        'Waits and runs of jobs (99 %)',
        's',
        quantileBy('queue', 'sluice_job_wait_seconds', '{{queue}} wait'),
        quantileBy('queue', 'sluice_job_run_seconds', '{{queue}} run'),
      ),
      graph(
        'Calls to third parties',
        'ops',
        rateBy('outbound, answer', 'sluice_outbound_calls_total'),
        rateBy('outbound, reason', 'sluice_outbound_refusals_total'),
      ),
      graph(
        'Third parties: waits, runs (99 %), calls that wait, and pauses',
        's',
        quantileBy('outbound', 'sluice_outbound_wait_seconds', '{{outbound}} wait'),
        quantileBy('outbound', 'sluice_outbound_run_seconds', '{{outbound}} run'),
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
      ),
      graph(
        'Clients: waits (99 %) and calls given up',
        's',
        quantileBy('reason', 'sluice_client_wait_seconds', 'wait {{reason}}'),
        [
          `sum by (reason) (${rate('sluice_client_give_ups_total', job)})`,
          'given up {{reason}}',
          'ops',
        ],
      ),
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
