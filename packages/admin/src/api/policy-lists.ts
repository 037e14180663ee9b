import { isOptions, type Optional, type Policy } from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import {
  type Difference,
  type OverrideEntry,
  type PolicyFile,
  placedPolicies,
  type StatusEntry,
} from '@sluice/policies'
import type { Granted } from '../access/authorize.ts'

export function listedPolicies(file: PolicyFile, inForce: readonly Policy[]): readonly object[] {
  const made = new Map(inForce.map((policy) => [policy.name, policy]))
  return placedPolicies(file).map(({ policy, path }) => {
    const { name, limit, key, enforce } = policy
    const [place, route] = path
    const share = enforce && 'share' in enforce ? enforce.share : undefined
    return {
      ...{ name, limit, share, window: policy.window, burst: policy.burst },
      routes: place === 'policies' ? ['*'] : routesWith(file, name, route),
      algorithm: policy.algorithm ?? 'sliding-log',
      mode: policy.mode ?? 'enforce',
      key: key ?? keyOfRoute(file, path) ?? file.key ?? 'ip',
      fields: changeable(made.get(name)),
    }
  })
}

/** Returns the routes that use a policy, and the one that defines it. */
function routesWith({ routes = {} }: PolicyFile, name: string, own: unknown): readonly string[] {
  return Object.entries(routes).flatMap(([route, rule]) => {
    if (rule === false) return []
    const named = typeof rule === 'string' ? [rule] : (rule.policies ?? [])
    return route === own || named.includes(name) ? [route] : []
  })
}

function keyOfRoute({ routes = {} }: PolicyFile, [place, name]: readonly unknown[]): unknown {
  const route = place === 'routes' ? routes[String(name)] : undefined
  return typeof route === 'object' ? route.key : undefined
}

/** @param policy `undefined` while no limiter uses it: then it is validated when it is changed */
function changeable(policy: Policy | undefined): readonly string[] {
  const hasBurst = policy !== undefined && 'burst' in algorithmOf(policy).options.fields
  return ['limit', ...(hasBurst ? ['burst'] : []), 'mode', 'share']
}

/** Returns the current overrides in precedence order, those of changes first. */
export function overridesOf(
  { overrides = [] }: PolicyFile,
  entries: readonly StatusEntry[],
  who: Granted,
): readonly object[] {
  const changed = entries.flatMap(({ policy, field, value, until, reason }) =>
    field === 'override' ? [{ policy, ...value, until, reason, origin: 'change' }] : [],
  )
  const textOf = ({ policy, key, limit, mode, until }: Optional<OverrideEntry>): string =>
    JSON.stringify([policy, key, limit, mode, until])
  const known = new Set(changed.map(textOf))
  const ofFile = overrides.filter((override) => !known.has(textOf(override)))
  const all = [...changed, ...ofFile.map((override) => ({ ...override, origin: 'file' }))]
  return all.map((override) => ({ ...override, key: shownKey(override.key, who) }))
}

/** Returns the entries of changes, without identities for callers who may only read. */
export function shownEntries(entries: readonly StatusEntry[], who: Granted): readonly object[] {
  return entries.map((entry) => {
    if (entry.field !== 'override') return entry
    return { ...entry, value: { ...entry.value, key: shownKey(entry.value.key, who) } }
  })
}

/** Returns differences, without identities for callers who may only read. */
export function hiddenIn(differences: readonly Difference[], who: Granted): readonly object[] {
  if (seesIdentities(who)) return differences
  return differences.map((difference) => {
    const { path, from, to } = difference
    return { ...difference, from: withoutIdentities(from, path), to: withoutIdentities(to, path) }
  })
}

const hidden = '…'

/** Hides override keys and the lists of allowed and blocked clients, including those of routes. */
function withoutIdentities(value: unknown, field: string): unknown {
  if (value === undefined) return undefined
  if (field === 'allow' || field === 'block') return hidden
  if (field === 'overrides' && Array.isArray(value)) {
    return value.map((each: { readonly key: object }) => ({ ...each, key: hiddenKey(each.key) }))
  }
  if (!isOptions(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, withoutIdentities(inner, name)]),
  )
}

function shownKey(key: OverrideEntry['key'], who: Granted): object {
  return seesIdentities(who) ? key : hiddenKey(key)
}

function hiddenKey(key: object): object {
  return Object.fromEntries(Object.keys(key).map((name) => [name, hidden]))
}

export function seesIdentities({ may }: Granted): boolean {
  return may.includes('keys') || may.includes('policies')
}
