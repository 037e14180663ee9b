import { parse } from 'yaml'
import { readText } from '../support/workspace.ts'

/** A rule of Prometheus. Its name is the heading of its section in the docs. */
interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook: string }
}

export const rulesFile = 'packages/metrics/alerts/sluice.rules.yml'
export const rules: readonly Rule[] = parse(readText(rulesFile)).groups[0].rules

/** Series as promtool's unit tests write them: `0+10x20` begins at 0 and grows by 10 a minute. */
type Series = Readonly<Record<string, string>>

interface AlertCases {
  /** When the cases are judged. */
  readonly at: string
  /** Series for which the alert fires, and for which it does not: one case, or several. */
  readonly firing: Series | readonly Series[]
  readonly silent: Series | readonly Series[]
}

const requests = (to: string) => `sluice_requests_total{job="api",instance="a",result="${to}"}`
const checks = (result: string, policy = 'p') =>
  `sluice_checks_total{job="api",policy="${policy}",result="${result}"}`
const ratio = (le: string) => `sluice_used_ratio_bucket{job="api",policy="p",le="${le}"}`
const limit = (of: string) => `sluice_policy_limit{job="api",instance="${of}",policy="p"}`
const info = (instance: string, version: string) =>
  `sluice_policy_info{job="api",instance="${instance}",policy="p",version="${version}"}`
const on = (name: string) => `${name}{job="api",instance="a"}`
const worker = 'sluice_fleet_instances{job="worker",instance="w"}'

/** Cases of the same series: the values of each as it fires, and as it is silent. */
function across(at: string, series: Readonly<Record<string, readonly [string, string]>>) {
  const valuesOf = (index: 0 | 1) =>
    Object.fromEntries(Object.entries(series).map(([name, values]) => [name, values[index]]))
  return { at, firing: valuesOf(0), silent: valuesOf(1) }
}

/** By the names of the alerts. */
export const cases: Readonly<Record<string, AlertCases>> = {
  SluiceManyDenials: across('20m', {
    [requests('denied')]: ['0+10x30', '0+2x30'],
    [requests('allowed')]: ['0+90x30', '0+98x30'],
  }),
  SluiceLimitWithoutEffect: {
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
  SluiceFallbackActive: across('5m', { [on('sluice_fallback_active')]: ['1x10', '0x10'] }),
  SluiceBreakerOpen: across('5m', { [on('sluice_breaker_state')]: ['2x2 1 2x7', '0x10'] }),
  SluiceFailedOpen: {
    at: '10m',
    firing: [
      { [requests('failed_open')]: '0+1x15' },
      { [requests('allowed')]: '0+1x15', [requests('failed_open')]: '_x7 1x8' },
    ],
    silent: { [requests('failed_open')]: '5x15' },
  },
  SluiceDeadlinesMissed: across('15m', {
    [on('sluice_deadlines_missed_total')]: ['0+120x20', '0+30x20'],
  }),
  SluiceClockSkew: across('10m', { [on('sluice_clock_skew_seconds')]: ['-3x15', '0.5x15'] }),
  SluiceNearMisses: across('30m', {
    [ratio('0.9')]: ['0+1x40', '0+5x40'],
    [ratio('+Inf')]: ['0+10x40', '0+10x40'],
  }),
  SluiceHotKey: across('20m', {
    'sluice_hot_key_share{job="api",instance="a",policy="p"}': ['0.7x30', '0.7x30'],
    [checks('allowed')]: ['0+120x30', '0+1x30'],
  }),
  SluiceKeysOwed: across('25m', {
    [on('sluice_keys_owed')]: ['50x30', '50-1x30'],
    [on('sluice_fallback_active')]: ['0x30', '0x30'],
  }),
  SluiceLimitsDisagree: across('15m', {
    [limit('a')]: ['100x20', '100x20'],
    [limit('b')]: ['200x20', '100x20'],
  }),
  SluiceVersionsDisagree: {
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
  SluiceDeadLetters: across('10m', {
    'sluice_jobs_total{job="api",queue="q",event="dead"}': ['0x5 1x10', '3x20'],
  }),
  SluiceQueueOld: across('10m', {
    'sluice_queue_oldest_seconds{job="api",queue="q"}': ['400x15', '200x15'],
  }),
  SluiceSeriesOverflow: across('30m', {
    'sluice_series_overflow_total{job="api",metric="route"}': ['0x10 1x40', '5x40'],
  }),
  SluiceMetricsMissing: {
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
