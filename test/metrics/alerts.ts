import { readText } from '../support/workspace.ts'

/** The address of the docs, with a slash at its end. */
export const site: string = JSON.parse(readText('package.json')).homepage

/** Series as promtool's unit tests write them: `0+10x20` begins at 0 and grows by 10 a minute. */
type Series = Readonly<Record<string, string>>

export interface Alert {
  readonly name: string
  readonly expr: string
  readonly for: string
  readonly severity: 'info' | 'warning' | 'critical'
  readonly summary: string
  /** When the cases are judged. */
  readonly at: string
  /** Series for which the alert fires, and for which it does not: one case, or several. */
  readonly firing: Series | readonly Series[]
  readonly silent: Series | readonly Series[]
}

const requests = (result: string) =>
  `sluice_requests_total{job="api",instance="a",result="${result}"}`
const checks = (result: string, policy = 'p') =>
  `sluice_checks_total{job="api",policy="${policy}",result="${result}"}`
const ratio = (le: string) => `sluice_used_ratio_bucket{job="api",policy="p",le="${le}"}`
const limit = (instance: string) =>
  `sluice_policy_limit{job="api",instance="${instance}",policy="p"}`
const info = (instance: string, version: string) =>
  `sluice_policy_info{job="api",instance="${instance}",policy="p",version="${version}"}`
const on = (name: string) => `${name}{job="api",instance="a"}`
const worker = 'sluice_fleet_instances{job="worker",instance="w"}'

/** The alerts that the package ships. The name of each is the heading of its section in the docs. */
const table: Readonly<Record<string, Omit<Alert, 'name'>>> = {
  SluiceManyDenials: {
    expr: 'sum by (job) (rate(sluice_requests_total{result="denied"}[5m])) / sum by (job) (rate(sluice_requests_total[5m])) > 0.05',
    for: '10m',
    severity: 'warning',
    summary: 'More than 5 % of the requests of {{ $labels.job }} are denied',
    at: '20m',
    firing: { [requests('denied')]: '0+10x30', [requests('allowed')]: '0+90x30' },
    silent: { [requests('denied')]: '0+2x30', [requests('allowed')]: '0+98x30' },
  },
  SluiceLimitWithoutEffect: {
    expr: '(sum by (job, policy) (increase(sluice_checks_total{result=~"denied|shadow_denied|fallback_denied"}[1d])) or 0 * sum by (job, policy) (increase(sluice_checks_total[1d]))) / sum by (job, policy) (increase(sluice_checks_total[1d])) < 0.001 unless on (job, policy) sluice_policy_info{algorithm="penalty"}',
    for: '1d',
    severity: 'info',
    summary:
      'Policy {{ $labels.policy }} of {{ $labels.job }} denies less than 0.1 % of its checks',
    at: '2d',
    firing: { [checks('allowed')]: '0+100x3000' },
    silent: {
      [checks('allowed')]: '0+100x3000',
      [checks('denied')]: '0+1x3000',
      [checks('shadow_allowed', 'trial')]: '0+100x3000',
      [checks('shadow_denied', 'trial')]: '0+1x3000',
      [checks('fallback_allowed', 'away')]: '0+100x3000',
      [checks('fallback_denied', 'away')]: '0+1x3000',
      [checks('allowed', 'ban')]: '0+100x3000',
      'sluice_policy_info{job="api",policy="ban",mode="enforce",algorithm="penalty"}': '1x3000',
    },
  },
  SluiceFallbackActive: {
    expr: 'max by (job, instance) (sluice_fallback_active) == 1',
    for: '1m',
    severity: 'critical',
    summary: '{{ $labels.instance }} decides without its store',
    at: '5m',
    firing: { [on('sluice_fallback_active')]: '1x10' },
    silent: { [on('sluice_fallback_active')]: '0x10' },
  },
  SluiceBreakerOpen: {
    expr: 'max by (job, instance) (sluice_breaker_state) == 2',
    for: '2m',
    severity: 'critical',
    summary: 'The circuit breaker of {{ $labels.instance }} is open',
    at: '5m',
    firing: { [on('sluice_breaker_state')]: '2x10' },
    silent: { [on('sluice_breaker_state')]: '1x10' },
  },
  SluiceFailedOpen: {
    // Of a series that begins with its first event, an increase misses that event.
    expr: 'sum by (job) (increase(sluice_requests_total{result="failed_open"}[5m])) > 0 or sum by (job) (sluice_requests_total{result="failed_open"} unless sluice_requests_total{result="failed_open"} offset 5m) > 0',
    for: '1m',
    severity: 'critical',
    summary: 'Requests of {{ $labels.job }} pass uncounted, since the store does not answer',
    at: '10m',
    firing: [
      { [requests('failed_open')]: '0+1x15' },
      { [requests('allowed')]: '0+1x15', [requests('failed_open')]: '_x7 1x8' },
    ],
    silent: { [requests('failed_open')]: '5x15' },
  },
  SluiceDeadlinesMissed: {
    expr: 'sum by (job) (rate(sluice_deadlines_missed_total[5m])) > 1',
    for: '5m',
    severity: 'warning',
    summary: 'The store of {{ $labels.job }} answers more than one check a second too late',
    at: '15m',
    firing: { [on('sluice_deadlines_missed_total')]: '0+120x20' },
    silent: { [on('sluice_deadlines_missed_total')]: '0+30x20' },
  },
  SluiceClockSkew: {
    expr: 'max by (job, instance) (abs(sluice_clock_skew_seconds)) > 1',
    for: '5m',
    severity: 'warning',
    summary: 'The clocks of {{ $labels.instance }} and of its store differ by {{ $value }} s',
    at: '10m',
    firing: { [on('sluice_clock_skew_seconds')]: '-3x15' },
    silent: { [on('sluice_clock_skew_seconds')]: '0.5x15' },
  },
  SluiceNearMisses: {
    expr: '1 - sum by (job, policy) (rate(sluice_used_ratio_bucket{le="0.9"}[10m])) / sum by (job, policy) (rate(sluice_used_ratio_bucket{le="+Inf"}[10m])) > 0.8',
    for: '15m',
    severity: 'warning',
    summary:
      'More than 80 % of the requests under policy {{ $labels.policy }} leave over 90 % of the limit used',
    at: '30m',
    firing: { [ratio('0.9')]: '0+1x40', [ratio('+Inf')]: '0+10x40' },
    silent: { [ratio('0.9')]: '0+5x40', [ratio('+Inf')]: '0+10x40' },
  },
  SluiceHotKey: {
    expr: 'max by (job, policy) (sluice_hot_key_share) > 0.5 and on (job, policy) sum by (job, policy) (rate(sluice_checks_total[5m])) > 1',
    for: '10m',
    severity: 'warning',
    summary: 'One identity makes more than half of the requests under policy {{ $labels.policy }}',
    at: '20m',
    firing: {
      'sluice_hot_key_share{job="api",instance="a",policy="p"}': '0.7x30',
      [checks('allowed')]: '0+120x30',
    },
    silent: {
      'sluice_hot_key_share{job="api",instance="a",policy="p"}': '0.7x30',
      [checks('allowed')]: '0+1x30',
    },
  },
  SluiceKeysOwed: {
    expr: 'min_over_time(sluice_keys_owed[10m]) > 0 and on (job, instance) delta(sluice_keys_owed[10m]) >= 0 and on (job, instance) sluice_fallback_active == 0',
    for: '5m',
    severity: 'warning',
    summary:
      '{{ $labels.instance }} has its store back, and does not tell it what was admitted meanwhile',
    at: '25m',
    firing: { [on('sluice_keys_owed')]: '50x30', [on('sluice_fallback_active')]: '0x30' },
    silent: { [on('sluice_keys_owed')]: '50-1x30', [on('sluice_fallback_active')]: '0x30' },
  },
  SluiceLimitsDisagree: {
    expr: 'max by (job, policy) (sluice_policy_limit) != min by (job, policy) (sluice_policy_limit)',
    for: '10m',
    severity: 'warning',
    summary:
      'Instances of {{ $labels.job }} declare different limits for policy {{ $labels.policy }}',
    at: '15m',
    firing: { [limit('a')]: '100x20', [limit('b')]: '200x20' },
    silent: { [limit('a')]: '100x20', [limit('b')]: '100x20' },
  },
  SluiceVersionsDisagree: {
    expr: 'count by (job, policy) (count by (job, policy, version) (sluice_policy_info)) > 1',
    for: '10m',
    severity: 'warning',
    summary:
      'Instances of {{ $labels.job }} have different versions of policy {{ $labels.policy }}',
    at: '20m',
    firing: { [info('a', '1a2b.4')]: '1x30', [info('b', '1a2b.3')]: '1x30' },
    silent: [
      { [info('a', '1a2b.4')]: '1x30', [info('b', '1a2b.4')]: '1x30' },
      // A change that reaches one instance a minute after the other.
      {
        [info('a', '1a2b.3')]: '1x5 stale',
        [info('b', '1a2b.3')]: '1x6 stale',
        [info('a', '1a2b.4')]: '_x6 1x24',
        [info('b', '1a2b.4')]: '_x7 1x23',
      },
    ],
  },
  SluiceDeadLetters: {
    expr: 'sum by (job, queue) (increase(sluice_jobs_total{event="dead"}[10m])) > 0',
    for: '0m',
    severity: 'warning',
    summary: 'Jobs of queue {{ $labels.queue }} fail for good',
    at: '10m',
    firing: { 'sluice_jobs_total{job="api",queue="q",event="dead"}': '0x5 1x10' },
    silent: { 'sluice_jobs_total{job="api",queue="q",event="dead"}': '3x20' },
  },
  SluiceQueueOld: {
    expr: 'max by (job, queue) (sluice_queue_oldest_seconds) > 300',
    for: '5m',
    severity: 'warning',
    summary: 'The oldest job of queue {{ $labels.queue }} waits for more than five minutes',
    at: '10m',
    firing: { 'sluice_queue_oldest_seconds{job="api",queue="q"}': '400x15' },
    silent: { 'sluice_queue_oldest_seconds{job="api",queue="q"}': '200x15' },
  },
  SluiceSeriesOverflow: {
    expr: 'sum by (job, metric) (increase(sluice_series_overflow_total[1h])) > 0',
    for: '0m',
    severity: 'info',
    summary: 'Labels of {{ $labels.metric }} find no room, and are counted as other',
    at: '30m',
    firing: { 'sluice_series_overflow_total{job="api",metric="route"}': '0x10 1x40' },
    silent: { 'sluice_series_overflow_total{job="api",metric="route"}': '5x40' },
  },
  SluiceMetricsMissing: {
    // Either a job has stopped, or none has ever begun.
    expr: 'count by (job) (present_over_time(sluice_fleet_instances[1d])) unless on (job) count by (job) (sluice_fleet_instances) or absent_over_time(sluice_fleet_instances[1d])',
    for: '5m',
    severity: 'critical',
    summary: 'No process{{ with $labels.job }} of {{ . }}{{ end }} shows metrics of Sluice',
    at: '30m',
    firing: [
      { 'up{job="api"}': '1x35' },
      { [on('sluice_fleet_instances')]: '1x15 stale', [worker]: '1x35' },
    ],
    silent: {
      [on('sluice_fleet_instances')]: '1x35',
      'sluice_fleet_instances{job="api",instance="b"}': '1 1 stale',
      [worker]: '1x35',
    },
  },
}

export const alerts: readonly Alert[] = Object.entries(table).map(([name, alert]) => ({
  name,
  ...alert,
}))

/** The file of rules, as an object. */
export const rulesFile = fileOf(alerts)

/** The same with seconds in place of minutes, for whoever does not want to wait. */
export const quickRulesFile = fileOf(
  alerts.map((alert) => ({
    ...alert,
    for: quick(alert.for),
    expr: alert.expr.replace(/(?<=\[|offset )\d+[mhd]/g, quick),
  })),
)

function quick(duration: string): string {
  const minutes = { m: 1, h: 60, d: 1_440 }[duration.at(-1) ?? ''] ?? Number.NaN
  return `${Number.parseInt(duration, 10) * minutes}s`
}

function fileOf(list: readonly Alert[]) {
  const rules = list.map(({ name, expr, for: wait, severity, summary }) => ({
    alert: name,
    expr,
    for: wait,
    labels: { severity },
    annotations: { summary, runbook: `${site}observability.html#${name.toLowerCase()}` },
  }))
  return { groups: [{ name: 'sluice', rules }] }
}
