import type { Static } from '@sinclair/typebox'
import {
  type Family,
  type InstrumentName,
  instruments,
  labelOf,
  type Sample,
  type TopKeysOptions,
} from '@sluice/metrics'
import { ApiError } from '../stores/api-error.ts'
import type { Admin, Answering } from './context.ts'
import type { liveAnswer } from './schemas/fleet.ts'
import type * as schemas from './schemas/keys.ts'

type Live = Static<typeof liveAnswer>
type Results = Live['requests']

const startedAt = Date.now()
/** With 1,000 policies this answer has 11 KB; the page itself does not use it. */
const maxPolicies = 60
/** A request that leaves more than this share of the limit used is a near miss. */
const nearMiss = 0.9

/** The fleet's counters, and the store as this process sees it. */
export const live: Answering = ({ admin }) => {
  const answer = liveOf(admin)
  const busiest = answer.policies.toSorted((one, other) => {
    return other.denied - one.denied || other.allowed - one.allowed
  })
  return { ...answer, policies: busiest.slice(0, maxPolicies), policiesInAll: busiest.length }
}

/** Rates from samples: requesting them takes no sample. Only `fallback` is of now. */
export const traffic: Answering = ({ admin }) => {
  const read = reader(metricsOf(admin).fleetSnapshot().families)
  const fallback = read('sluice_fallback_active').some(({ value }) => value > 0)
  return { ...admin.history?.traffic, fallback }
}

export function liveOf(admin: Pick<Admin, 'instance' | 'metrics' | 'policies'>): Live {
  const { scope, processes, families } = metricsOf(admin).fleetSnapshot()
  const read = reader(families)
  const requests = { ...noResults }
  for (const { labels, value } of read('sluice_requests_total')) {
    const [, , result = ''] = labels
    if (isResult(result)) requests[result] += value
  }
  const single = (name: InstrumentName): number => read(name)[0]?.value ?? 0
  return {
    ...{ instance: admin.instance, scope, processes, at: Date.now(), since: startedAt, requests },
    policies: policiesIn(read, namesOf(admin)),
    latency: latencyIn(read),
    store: {
      breaker:
        (['closed', 'half-open', 'open'] as const)[single('sluice_breaker_state')] ?? 'closed',
      fallback: single('sluice_fallback_active') > 0,
      keysOwed: single('sluice_keys_owed'),
      instances: single('sluice_fleet_instances'),
      clockSkewSeconds: single('sluice_clock_skew_seconds'),
      deadlinesMissed: single('sluice_deadlines_missed_total'),
      failedCalls: single('sluice_store_call_failures_total'),
    },
  }
}

export const top: Answering<Static<typeof schemas.topQuery>> = ({ admin, query }) => {
  const { policy, by = 'denied', window = '1m', most = 20 } = query
  const isWanted = (name: string) => policy === undefined || policy === name
  return { by, window, lists: topLists(admin, isWanted, { by, window, most }) }
}

/** Lists the busiest keys of each policy with traffic. */
export function topLists(
  admin: Admin,
  isWanted: (name: string) => boolean,
  asked: Omit<TopKeysOptions, 'policy'>,
) {
  const metrics = metricsOf(admin)
  const [shadows, names] = [shadowPolicies(admin), namesOf(admin)]
  const read = reader(metrics.fleetSnapshot().families)
  const labels = new Set(read('sluice_checks_total').map(({ labels: [label = ''] }) => label))
  return [...labels].flatMap((label) => {
    const name = names.get(label) ?? label
    const found = isWanted(name) && metrics.topKeys({ ...asked, policy: label })
    const mode = shadows.has(name) ? 'shadow' : 'enforce'
    return found ? [{ policy: name, mode, ...found }] : []
  })
}

/** Names of the current policies by metric label. */
function namesOf({ policies }: Pick<Admin, 'policies'>): ReadonlyMap<string, string> {
  return new Map(policies?.policies.map((policy) => [labelOf(policy), policy.name]))
}

/** Names of policies that currently refuse nothing. */
export function shadowPolicies({ policies }: Admin): ReadonlySet<string> {
  const isKilled = policies !== undefined && policies.state.kill !== 'none'
  const inForce = policies?.policies ?? []
  return new Set(
    inForce.filter((each) => isKilled || each.enforcedShare === 0).map(({ name }) => name),
  )
}

export function metricsOf({ metrics }: Pick<Admin, 'metrics'>): NonNullable<Admin['metrics']> {
  if (metrics) return metrics
  throw new ApiError(
    404,
    'There are no metrics: createAdmin({ metrics: collectMetrics({ store }) }).',
  )
}

type Read = (name: InstrumentName) => readonly Sample[]

function reader(families: readonly Family[]): Read {
  const byName = new Map(families.map(({ name, samples }) => [name, samples]))
  return (name) => byName.get(name) ?? []
}

const noResults: Results = {
  ...{ allowed: 0, denied: 0, shadow_denied: 0, queued: 0 },
  ...{ skipped: 0, shed: 0, failed_open: 0, failed_closed: 0 },
}

function isResult(result: string): result is keyof Results {
  return Object.hasOwn(noResults, result)
}

function policiesIn(read: Read, names: ReadonlyMap<string, string>): Live['policies'] {
  const byPolicy = new Map<string, Live['policies'][number]>()
  const of = (label: string): Live['policies'][number] => {
    const policy = names.get(label) ?? label
    const known = byPolicy.get(policy) ?? {
      ...{ policy, allowed: 0, denied: 0, shadowAllowed: 0, shadowDenied: 0 },
      ...{ fallback: 0, nearMisses: 0 },
    }
    byPolicy.set(policy, known)
    return known
  }
  for (const { labels, value } of read('sluice_checks_total')) {
    const counts = of(labels[0] ?? '')
    const result = labels[1] ?? ''
    const field = checkFields.get(result.replace('fallback_', ''))
    if (field) counts[field] += value
    if (result.startsWith('fallback_')) counts.fallback += value
  }
  for (const { labels, buckets = [] } of read('sluice_used_ratio')) {
    of(labels[0] ?? '').nearMisses = buckets
      .slice(usedBounds.findIndex((bound) => bound > nearMiss))
      .reduce((total, each) => total + each, 0)
  }
  for (const [field, name] of gauges) {
    for (const { labels, value } of read(name)) of(labels[0] ?? '')[field] = value
  }
  return [...byPolicy.values()]
}

const gauges = [
  ['limit', 'sluice_policy_limit'],
  ['windowSeconds', 'sluice_policy_window_seconds'],
  ['hotKeyShare', 'sluice_hot_key_share'],
] as const
type CheckField = 'allowed' | 'denied' | 'shadowAllowed' | 'shadowDenied'
const checkFields = new Map<string, CheckField>([
  ['allowed', 'allowed'],
  ['denied', 'denied'],
  ['shadow_allowed', 'shadowAllowed'],
  ['shadow_denied', 'shadowDenied'],
])
const usedBounds = instruments.sluice_used_ratio.buckets ?? []
const latencyBounds = instruments.sluice_decision_seconds.buckets ?? []

function latencyIn(read: Read): Live['latency'] {
  return read('sluice_decision_seconds').map(({ labels, value, buckets = [] }) => ({
    answeredBy: labels[0] ?? '',
    count: buckets.reduce((total, each) => total + each, 0),
    sumSeconds: value,
    buckets: buckets.map((count, index) => {
      const le = latencyBounds[index]
      return le === undefined ? { count } : { le, count }
    }),
  }))
}
